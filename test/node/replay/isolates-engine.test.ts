import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import type { ReplayOptions } from "../../../cli/replay/engine.ts";
import { Random } from "../../../cli/simulation/random.ts";
import type { ConfigInput, RuleInput } from "../../../src/config/index.ts";
import { ALL, COMBINED, type Decided, decide, engineOf, logged } from "./requests.ts";

const MINUTE = 60_000;
const LIMIT: ConfigInput = { rules: [{ name: "all", limit: 40, window: "1m" }] };

/** Returns requests of one client with random times between them. */
function traffic(requests: number, meanSeconds: number, fields: Partial<LogRequest> = {}) {
  const random = new Random(7, "traffic");
  let second = 0;
  return Array.from({ length: requests }, () => {
    second += 0.001 + random.exponential(meanSeconds);
    return logged(Math.floor(second * 1000) / 1000, fields);
  });
}

/** Replays requests in batches, to the end. */
async function replay(
  config: ConfigInput,
  requests: readonly LogRequest[],
  options: ReplayOptions,
  facts = COMBINED,
) {
  const engine = engineOf(config, facts, options);
  const decided: Decided[] = [];
  for (let start = 0; start < requests.length; start += 100) {
    await decide(engine, requests.slice(start, start + 100), decided);
  }
  const usage = await engine.finish();
  return { engine, decided, usage };
}

const summaryOf = ({ request, outcome, verdicts }: Decided) => ({
  at: request.at,
  outcome,
  denied: verdicts.map(({ denied }) => denied),
});

const inOrder = (decided: readonly Decided[]) => decided.map(summaryOf).sort((a, b) => a.at - b.at);

describe("a replay by many isolates", () => {
  it("decides each request once, and never admits more than the limit", async () => {
    const requests = traffic(3000, 0.1);
    const { decided, usage } = await replay(LIMIT, requests, { isolates: 20 });
    expect(new Set(decided.map(({ request }) => request))).toEqual(new Set(requests));
    expect(decided).toHaveLength(requests.length);
    const admitted = new Map<number, number>();
    for (const { verdicts } of decided) {
      for (const { denied, windowStart } of verdicts) {
        if (!denied) admitted.set(windowStart, (admitted.get(windowStart) ?? 0) + 1);
      }
    }
    expect(Math.max(...admitted.values())).toBeLessThanOrEqual(40);
    expect(Math.min(...[...admitted.values()].slice(0, -1))).toBeGreaterThan(36);
    expect(usage.calls).toBeLessThan(requests.length / 2);
    expect(usage.commands).toBeGreaterThan(usage.calls);
  });

  it("is the same with the same seed, and differs with another one", async () => {
    const requests = traffic(500, 0.1);
    const run = async (seed?: number) => {
      const { decided, usage } = await replay(LIMIT, requests, { isolates: 9, seed });
      return { decided: decided.map(summaryOf), usage };
    };
    expect(await run(5)).toEqual(await run(5));
    expect(await run(5)).not.toEqual(await run(6));
  });

  it("spreads requests over their second, and keeps them in it, if the log has whole seconds", async () => {
    const requests = Array.from({ length: 300 }, (_, index) => logged(Math.floor(index / 50)));
    const { decided, usage } = await replay(LIMIT, requests, { isolates: 1 });
    expect(decided.map(({ request }) => request.at)).toEqual(requests.map(({ at }) => at));
    const allowed = decided.filter(({ outcome }) => outcome === "allowed");
    expect(allowed.length).toBeGreaterThan(36);
    expect(usage.calls).toBeLessThan(30);
  });

  it.each<Omit<RuleInput, "name"> & { title: string }>([
    { title: "a ban", limit: 5, window: "1m", ban: "2m" },
    { title: "quota that rolls over", limit: 3, window: "10s", capacity: 9 },
    { title: "a limit of 0", limit: 0, window: "1m" },
    { title: "failed responses", limit: 3, window: "1m", count: { status: [404] } },
    { title: "a reserve", limit: 5, window: "1m", count: { status: [404], reserve: true } },
    { title: "a cost of responses", limit: 20, window: "1m", cost: "header:x-cost" },
    { title: "shadow mode", limit: 8, window: "1m", mode: "shadow" },
    { title: "the mode mark", limit: 8, window: "1m", mode: "mark" },
    { title: "shards", limit: 30, window: "1m", shards: 3 },
    { title: "windows of a calendar", limit: 40, window: "day", timeZone: "Asia/Tokyo" },
    { title: "leases", limit: 12, window: "30s" },
  ])(
    "decides rules with $title like one store, if nothing is concurrent",
    async ({ title: _title, ...rule }) => {
      const random = new Random(3, "gaps");
      let second = 0;
      const requests = Array.from({ length: 400 }, (_, index) => {
        // A round trip takes less than this, and no ban or window ends within a round trip after it.
        second += 0.7 * (1 + random.below(3));
        return logged(Math.round(second * 10) / 10, {
          status: index % 3 === 0 ? 404 : 200,
          responseHeaders: new Map([["x-cost", `${index % 4}`]]),
        });
      });
      const config = { rules: [{ name: "rule", ...rule }] } as ConfigInput;
      const exact = await replay(config, requests, { seed: 3 }, ALL);
      const simulated = await replay(config, requests, { isolates: 1, seed: 3 }, ALL);
      expect(inOrder(simulated.decided)).toEqual(inOrder(exact.decided));
      expect(exact.decided.some(({ verdicts }) => verdicts[0]?.denied)).toBe(true);
    },
  );

  it("hides its clock from the code that gets the verdicts", async () => {
    const engine = engineOf(LIMIT, COMBINED, { isolates: 3 });
    const startedAt = Date.now();
    const seen: number[] = [];
    await engine.replay(traffic(200, 0.01), () => seen.push(Date.now()));
    await engine.finish();
    expect(seen).toHaveLength(200);
    for (const now of seen) expect(Math.abs(now - startedAt)).toBeLessThan(MINUTE);
  });

  it("counts requests that wait in an isolate that ends as undecided, and says so", async () => {
    const requests = traffic(20_000, 0.05).map((request, index) => {
      return { ...request, ip: `203.0.113.${index % 200}` };
    });
    const { decided, engine } = await replay(LIMIT, requests, { isolates: 200 });
    const undecided = decided.filter(({ outcome }) => outcome === "undecided");
    expect(decided).toHaveLength(requests.length);
    const lost = engine.laterNotes.filter(({ code }) => code === "lost-with-isolate");
    expect(lost).toHaveLength(undecided.length > 0 ? 1 : 0);
  });
});
