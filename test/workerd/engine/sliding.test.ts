import { describe, expect, it } from "vitest";
import { type Demand, type Row, type Tally, windowStart } from "../../../src/engine/counter.ts";
import { adjustGroup, decideGroup, quotaAfterMs } from "../../../src/engine/fixed-window.ts";
import { evenQuota } from "../../../src/engine/sub-windows.ts";
import { counter } from "../../suite/counters.ts";
import { DAY, HOUR, MINUTE, NOW } from "../../suite/driver.ts";
import { randomOf } from "../../suite/random.ts";
import { runs, SEED } from "../../suite/runs.ts";
import { type Charge, mostInAnyInterval } from "../../suite/sliding-suite.ts";

const LENGTHS = [1000, 5000, 10_000, MINUTE, 15 * MINUTE, HOUR, DAY];

/** Each number of sub-windows that divides a length into whole milliseconds. */
function divisorsOf(lengthMs: number): number[] {
  const all = Array.from({ length: 59 }, (_, index) => index + 2);
  return all.filter((subWindows) => lengthMs % subWindows === 0);
}

type Random = (below: number) => number;

function pick<Each>(random: Random, all: readonly Each[]): Each {
  return all[random(all.length)] as Each;
}

/** A client of one limit, and what it has been charged. */
class Client {
  readonly lengthMs: number;
  readonly charges: Charge[] = [];
  counter: Demand;
  #row: Row | undefined;

  constructor(random: Random, limit: number) {
    this.lengthMs = pick(random, LENGTHS);
    const subWindows = pick(random, divisorsOf(this.lengthMs));
    const windowMs = this.lengthMs / subWindows;
    this.counter = counter({ limit, subWindows, windowMs, offsetMs: random(windowMs) });
  }

  /** Sends a request. @returns the milliseconds until a retry; 0 if the request is admitted */
  send(cost: number, now: number): number {
    const { verdict, writes } = decideGroup([{ ...this.counter, cost }], now, this.#read(now));
    for (const row of writes.values()) this.#row = row;
    if (verdict.admitted) this.charges.push({ at: now, cost });
    return verdict.admitted ? 0 : this.#retryMs(cost, verdict.tallies, now);
  }

  wouldAdmit(cost: number, now: number): boolean {
    return decideGroup([{ ...this.counter, cost }], now, this.#read(now)).verdict.admitted;
  }

  /** Changes the charge of an earlier request. */
  settle(cost: number, chargedAt: number, now: number): void {
    const { windowMs, offsetMs } = this.counter;
    const chargedIn = Math.floor((chargedAt - offsetMs) / windowMs);
    const adjusted = adjustGroup([{ ...this.counter, cost, chargedIn }], now, this.#read(now));
    for (const row of adjusted.writes.values()) this.#row = row;
  }

  #retryMs(cost: number, [tally]: readonly Tally[], now: number): number {
    return quotaAfterMs({ ...this.counter, cost }, tally as Tally, this.counter.ceiling, now);
  }

  #read(now: number) {
    return () => (this.#row && this.#row.expiresAt > now ? this.#row : undefined);
  }
}

/** Returns the time of a client's next request. `retryMs` is the answer to the last one. */
type Pattern = (client: Client, at: number, retryMs: number, random: Random) => number;

const PATTERNS: Readonly<Record<string, Pattern>> = {
  "in bursts": ({ lengthMs }, at, _, random) => (random(9) > 0 ? at : at + random(1.5 * lengthMs)),
  evenly: ({ lengthMs, counter: { limit } }, at) => at + Math.ceil(lengthMs / (limit + 1)),
  "at random times": ({ lengthMs, counter: { limit } }, at, _, random) =>
    at + random(Math.ceil((3 * lengthMs) / limit)),
  "around the boundaries of sub-windows": ({ counter: each }, at, _, random) => {
    const index = Math.floor((at - each.offsetMs) / each.windowMs) + random(2) * random(12);
    return Math.max(at, windowStart(each, index) + pick(random, [-1, 0, 1, each.windowMs - 1]));
  },
  "at each time of a retry": (_, at, retryMs) => at + retryMs,
  "at each time of a retry, and just before": (_, at, retryMs, random) =>
    at + Math.max(0, retryMs - random(2)),
};

const ARRIVALS = 500;

describe("a sliding window", () => {
  it.each(Object.entries(PATTERNS))(
    "holds at most the limit in every interval of its length, with requests that come %s",
    (_, next) => {
      const random = randomOf(SEED);
      const sequences = runs(1_000_000 / ARRIVALS / Object.keys(PATTERNS).length);
      let full = 0;
      for (let sequence = 0; sequence < sequences; sequence++) {
        const limit = pick(random, [1, 2, 5, 10, 1 + random(60), 200]);
        const client = new Client(random, limit);
        const maxCost = Math.min(limit, pick(random, [1, 1, 2, 5]));
        let at = NOW + random(client.lengthMs);
        let retryMs = 0;
        for (let arrival = 0; arrival < ARRIVALS; arrival++) {
          at = next(client, at, retryMs, random);
          retryMs = client.send(1 + random(maxCost), at);
        }
        const most = mostInAnyInterval(client.charges, client.lengthMs);
        expect(most, JSON.stringify(client.counter)).toBeLessThanOrEqual(limit);
        if (most === limit) full += 1;
      }
      expect(full).toBeGreaterThan(sequences / 4);
    },
  );

  it("denies no client that sends evenly at the guaranteed rate, whenever it begins", () => {
    const random = randomOf(SEED);
    for (let sequence = 0; sequence < runs(2000); sequence++) {
      const client = new Client(random, 2 + random(100));
      const { limit, subWindows = 0 } = client.counter;
      const quota = evenQuota(limit, subWindows);
      const from = NOW + random(client.lengthMs);
      for (let request = 0; request < 3 * quota; request++) {
        const at = Math.floor(from + (request * client.lengthMs) / quota);
        expect(client.send(1, at), JSON.stringify(client.counter)).toBe(0);
      }
    }
  });

  it("is stored until its last charge does not count any more, and a second longer", () => {
    const each = counter({ subWindows: 10, windowMs: 6000 });
    const { writes } = decideGroup([each], NOW + 1, () => undefined);
    expect([...writes]).toMatchObject([[each.key, { expiresAt: NOW + 66_000 + 1000 }]]);
  });

  it("admits a denied request at the time of its retry, and no millisecond earlier", () => {
    const random = randomOf(SEED);
    let denials = 0;
    while (denials < runs(10_000)) {
      const limit = 1 + random(30);
      const client = new Client(random, limit);
      let at = NOW + random(client.lengthMs);
      for (let arrival = 0; arrival < 100; arrival++) {
        at += random(Math.ceil(client.lengthMs / limit));
        const last = client.charges.at(-1);
        // A response costs more or less than its reserve, so counts rise above the limit.
        if (last && random(5) === 0) client.settle(random(2 * limit + 3) - 3, last.at, at);
        // An operator changes the limit.
        if (random(30) === 0) client.counter = { ...client.counter, ceiling: 1 + random(limit) };
        const cost = 1 + random(Math.min(5, client.counter.ceiling));
        const retryMs = client.send(cost, at);
        if (retryMs === 0) continue;
        denials += 1;
        expect(client.wouldAdmit(cost, at + retryMs - 1)).toBe(false);
        expect(client.wouldAdmit(cost, at + retryMs)).toBe(true);
      }
    }
  });
});
