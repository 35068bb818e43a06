import { describe, expect, it } from "vitest";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import type { Store } from "../../../src/stores/store.ts";
import { HOUR, MINUTE, NOW } from "../../suite/driver.ts";
import { EVERY_STORE, withClock } from "../../suite/every-store.ts";
import { identifying } from "../request/requests.ts";

type Rule = Partial<RuleInput>;
type Change = [change: string, before: Rule, after: Rule, left: number];

/**
 * The fields of a rule before and after a deploy. By default, the rule allows five requests an
 * hour. Before the deploy, a client uses 3 of its quota. `left` is the quota that the client has
 * left after the deploy.
 */
const changes: Change[] = [
  ["nothing", {}, {}, 2],
  ["a limit that is raised", {}, { limit: 9 }, 6],
  ["a limit that is lowered", {}, { limit: 2 }, 0],
  ["another window", {}, { window: "2h" }, 5],
  ["another name", {}, { name: "other" }, 5],
  ["another key", {}, { key: "global" }, 5],
  ["capacity that is added", {}, { capacity: 8 }, 8],
  ["capacity that is raised", { capacity: 8 }, { capacity: 9 }, 6],
  ["capacity that is removed", { capacity: 8 }, {}, 5],
  ["shards that are added", {}, { limit: 10, shards: 2 }, 5],
  ["another mode", {}, { mode: "shadow" }, 2],
  ["a ban that is added", {}, { ban: "1h" }, 2],
  ["tiers that are added", {}, tiersOf(20), 17],
  ["tiers that are removed", tiersOf(20), {}, 2],
  // The deploy is at half past an hour. With a start at 0:15, the current window keeps its number.
  // With a start at 0:45, the current window gets the number of the previous window.
  ["a start that keeps the window's number", {}, { start: "1970-01-01T00:15:00Z" }, 2],
  ["a start that changes the window's number", {}, { start: "1970-01-01T00:45:00Z" }, 5],
  ["sliding that is added", {}, { sliding: true }, 5],
  ["sliding that is removed", { sliding: true }, {}, 5],
  ["another number of sub-windows", { sliding: true }, { sliding: 6 }, 5],
  ["a limit of sub-windows that is raised", { sliding: 6 }, { sliding: 6, limit: 9 }, 6],
  ["a limit of sub-windows that is lowered", { sliding: true }, { sliding: true, limit: 2 }, 0],
  ["a start of sub-windows", { sliding: true }, { sliding: true, start: "1970-01-01T00:07Z" }, 2],
  ["a month in place of 30 days", { window: "30d" }, { window: "month" }, 5],
  ["a week in place of a month", { window: "month" }, { window: "week" }, 5],
  ["a limit of a month that is raised", { window: "month" }, { window: "month", limit: 9 }, 6],
  ["a start of days that keeps their number", { window: "day" }, dayFrom(15), 2],
  ["a start of days that changes their number", { window: "day" }, dayFrom(45), 5],
  ["a time zone that shows the same day", { window: "day" }, dayIn(1), 2],
  ...[dayFrom(15), dayFrom(45), dayIn(1)].map(
    (after): Change => [
      `${JSON.stringify(after)} with quota that rolls over`,
      { window: "day", capacity: 5, maxReserved: 1 },
      { capacity: 5, maxReserved: 1, ...after },
      2,
    ],
  ),
  ["a time zone that shows another day", { window: "day" }, dayIn(12), 5],
];

/** Days that begin some minutes after the full hour before the deploy. */
function dayFrom(minutes: number): Rule {
  const start = new Date(NOW + minutes * MINUTE).toISOString().slice(11, 16);
  return { window: "day", start: start as "00:15" };
}

/**
 * Days in a time zone that is `hours` ahead of UTC or behind it: a difference of 1 never changes the
 * date at the time of the deploy, and a difference of 12 always does.
 */
function dayIn(hours: 1 | 12): Rule {
  const isMorning = new Date(NOW).getUTCHours() < 12;
  // The zone `Etc/GMT-1` is an hour ahead of UTC.
  const sign = isMorning === (hours === 1) ? "-" : "+";
  return { window: "day", timeZone: `Etc/GMT${sign}${hours}` };
}

function tiersOf(limit: number): Rule {
  return { tiers: { by: "header:x-plan", limits: { pro: { limit, window: "1h" } } } };
}

/**
 * Creates a limiter for a rule, with a clock at half past an hour. Returns the limiter, and the
 * rule as applied to a request.
 */
async function deploy(store: Store, prefix: string, fields: Rule) {
  const rules = [{ name: "api", limit: 5, window: "1h", ...fields }];
  const limiter = new Limiter(
    defineConfig({ prefix, rules }),
    withClock(store, () => NOW + HOUR / 2),
  );
  const applied = await identifying(rules)({ "x-plan": "pro" });
  // This test enforces every rule, also a rule in shadow mode, as `getValue` does. So the decision
  // contains the rule's quota left.
  const enforced = applied.map(
    (each) => ({ ...each, rule: { ...each.rule, mode: "enforce" } }) as const,
  );
  return { limiter, enforced };
}

describe.each(Object.keys(EVERY_STORE))("after a deploy, over %s", (name) => {
  it.each(changes)("a client has the documented quota left: %s", async (_, before, after, left) => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    const old = await deploy(store, prefix, before);
    const taken = await old.limiter.decide(old.enforced, { cost: 3 });
    expect(taken).toMatchObject({ outcome: "allowed" });
    const { limiter, enforced } = await deploy(store, prefix, after);
    const decision = await limiter.decide(enforced, { cost: 0, checkOnly: true });
    expect("quotas" in decision && decision.quotas[0]?.remaining).toBe(left);
  });

  it("a start that gives the current window an earlier number does not promise quota too early", async () => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    const rolling: Rule = { window: "day", capacity: 6, maxReserved: 9 };
    const old = await deploy(store, prefix, rolling);
    await old.limiter.decide(old.enforced, { cost: 6 });
    const { limiter, enforced } = await deploy(store, prefix, { ...rolling, ...dayFrom(45) });
    // The current window ends in 15 minutes, but the old window's number is that of the next one.
    const waitMs = 24 * HOUR + HOUR / 4;
    expect(await limiter.decide(enforced)).toMatchObject({
      outcome: "limited",
      retryAfterMs: waitMs,
      quotas: [{ resetMs: waitMs, resetAt: NOW + HOUR / 2 + waitMs, windowMs: 24 * HOUR }],
    });
    expect(await limiter.decide(enforced, { cost: 4, reserve: true })).toMatchObject({
      outcome: "allowed",
      quotas: [{ reservationDelayMs: waitMs }],
    });
  });

  it.each([
    ["one length", "1h"],
    ["several lengths", ["1h", "2h"]],
  ])("a client is no longer banned after a ban of %s is removed from the rule", async (_, ban) => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    const old = await deploy(store, prefix, { ban });
    await old.limiter.decide(old.enforced, { cost: 3 });
    for (const cost of [3, 1]) {
      const denied = await old.limiter.decide(old.enforced, { cost });
      expect(denied).toMatchObject({ outcome: "limited" });
    }
    const { limiter, enforced } = await deploy(store, prefix, {});
    const admitted = await limiter.decide(enforced, { cost: 2 });
    expect(admitted).toMatchObject({ outcome: "allowed" });
    // If the ban returns to the rule while its row is stored, the client is banned again.
    expect(await old.limiter.decide(old.enforced)).toMatchObject({ outcome: "limited" });
  });

  it.each<[string, Rule, Rule]>([
    ["one length becomes several", { ban: "2h" }, { ban: ["1h", "3h"] }],
    ["several lengths become one", { ban: ["2h", "3h"] }, { ban: "1h" }],
    ["the lengths change", { ban: ["2h", "2h"] }, { ban: ["1h", "1h", "9h"] }],
  ])("a banned client stays banned until its ban ends: %s", async (_, before, after) => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    const old = await deploy(store, prefix, before);
    expect(await old.limiter.decide(old.enforced, { cost: 6 })).toMatchObject({
      outcome: "limited",
    });
    const { limiter, enforced } = await deploy(store, prefix, after);
    const decision = await limiter.decide(enforced);
    const retryAfterMs = decision.outcome === "limited" ? decision.retryAfterMs : 0;
    expect(retryAfterMs).toBeGreaterThan(2 * HOUR - 10_000);
    expect(retryAfterMs).toBeLessThanOrEqual(2 * HOUR);
  });

  it("a request that costs 0 is denied above a lowered limit, but begins no ban", async () => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    const free = { cost: 0 };
    for (const ban of ["2h", ["2h", "3h"]]) {
      const old = await deploy(store, prefix, { ban });
      await old.limiter.decide(old.enforced, { cost: 3 });
      const equal = await deploy(store, prefix, { limit: 3, ban });
      expect(await equal.limiter.decide(equal.enforced, free)).toMatchObject({
        outcome: "allowed",
      });
      const { limiter, enforced } = await deploy(store, prefix, { limit: 2, ban });
      const denied = { outcome: "limited", retryAfterMs: HOUR / 2 };
      for (const _ of [1, 2]) {
        expect(await limiter.decide(enforced, free)).toMatchObject(denied);
      }
      // A ban that another request has begun applies to requests that cost 0, too.
      await limiter.decide(enforced);
      const banned = await limiter.decide(enforced, free);
      expect(banned.outcome === "limited" && banned.retryAfterMs).toBeGreaterThan(HOUR);
      await limiter.clients.reset(enforced[0] as AppliedRule);
    }
  });

  it("two versions that run at the same time share the counts, each with its own limit", async () => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    const old = await deploy(store, prefix, { limit: 100 });
    const { limiter, enforced } = await deploy(store, prefix, { limit: 50 });
    expect(await old.limiter.decide(old.enforced, { cost: 60 })).toMatchObject({
      outcome: "allowed",
    });
    expect(await limiter.decide(enforced)).toMatchObject({ outcome: "limited" });
    expect(await old.limiter.decide(old.enforced)).toMatchObject({ outcome: "allowed" });
  });

  it.each([
    [4, 2],
    [2, 4],
  ])("%i shards that become %i admit half of the limit again", async (...numbers) => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    let admitted = 0;
    for (const shards of numbers) {
      const { limiter, enforced } = await deploy(store, prefix, { limit: 20, shards });
      // Each request picks a shard at random. After 100 requests, all shards are full.
      for (let request = 0; request < 100; request++) {
        const { outcome } = await limiter.decide(enforced);
        if (outcome === "allowed") admitted += 1;
      }
    }
    expect(admitted).toBe(30);
  });
});
