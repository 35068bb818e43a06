import { evictDurableObject, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import type { HandOver } from "../../../src/control/protocol.ts";
import { noSums } from "../../../src/statistics/add-sums.ts";
import { MINUTE_MS, type MinuteSums } from "../../../src/statistics/sums.ts";

afterEach(reset);

const globalObject = () => env.WEIR_CONTROL.getByName("global");
const NOW = Date.now();

/** The sums of one minute, with this number of requests that the rule `search` has allowed. */
function minute(requests: number, at = NOW): MinuteSums {
  const sums = noSums(Math.floor(at / MINUTE_MS));
  const rule = {
    requests,
    allowed: requests,
    limited: 0,
    marked: 0,
    undecided: 0,
    shadowLimited: 0,
  };
  return {
    ...sums,
    requests: { ...sums.requests, requests, allowed: requests },
    rules: { search: rule },
  };
}

function handOver(sequence: number, minutes: MinuteSums[], more: Partial<HandOver> = {}): HandOver {
  return {
    source: "isolate",
    sequence,
    isolates: 1,
    minutes,
    clients: [],
    breakerOpen: false,
    overridesVersion: 0,
    ...more,
  };
}

describe("totals", () => {
  it("adds up hand-overs, and counts a repeated one once", async () => {
    const object = globalObject();
    await object.handOver(handOver(1, [minute(3)]));
    await object.handOver(handOver(1, [minute(3)]));
    await object.handOver(handOver(2, [minute(4)]));
    const { requests, rules, isolates } = await object.totals();
    expect(requests).toMatchObject({ requests: 7, allowed: 7 });
    expect(rules.search).toMatchObject({ requests: 7, allowed: 7 });
    expect(isolates).toBe(1);
  });

  it("survive the eviction of the object, and so does the number of the last hand-over", async () => {
    const object = globalObject();
    await object.handOver(handOver(1, [minute(3)]));
    await evictDurableObject(object);
    await object.handOver(handOver(1, [minute(3)]));
    await object.handOver(handOver(2, [minute(1)]));
    expect((await object.totals()).requests.requests).toBe(4);
  });
});

describe("objects", () => {
  it("know their names", async () => {
    const collector = env.WEIR_CONTROL.getByName("EU:17");
    await collector.handOver(handOver(1, [minute(5)]));
    expect((await globalObject().totals()).requests.requests).toBe(5);
  });
});
