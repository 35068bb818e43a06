import fc from "fast-check";
import { MAX_WINDOW_SECONDS } from "../../src/config/duration.ts";
import { defineConfig, type RuleInput } from "../../src/config/index.ts";
import type { Rule } from "../../src/config/rule.ts";
import { MAX_LIMIT } from "../../src/config/window.ts";
import { type Demand, MAX_COUNT, type Tally } from "../../src/engine/counter.ts";
import { ruleCountersOf } from "../../src/limiter/counters.ts";
import {
  isViolated,
  type Limited,
  type Quota,
  quotasOf,
  type RuleVerdict,
} from "../../src/limiter/decision.ts";

/** Generates integers from `min` to `max`, often one of the ten smallest. */
const upTo = (max: number, min = 0) =>
  fc.oneof(fc.integer({ min, max: Math.min(max, min + 9) }), fc.integer({ min, max }));

const quota = fc
  .record({
    limit: upTo(MAX_LIMIT),
    window: upTo(MAX_WINDOW_SECONDS, 1),
    more: upTo(MAX_LIMIT),
    maxReserved: upTo(MAX_LIMIT),
    rolls: fc.boolean(),
  })
  .map(({ limit, window, more, maxReserved, rolls }) =>
    rolls && limit > 0
      ? { limit, window, capacity: Math.min(MAX_LIMIT, limit + more), maxReserved }
      : { limit, window },
  );

const VISIBLE = fc.stringMatching(/^[\t -~]{0,20}$/);

const rule: fc.Arbitrary<RuleInput> = fc.record(
  {
    name: fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,63}$/),
    limits: fc.uniqueArray(quota, {
      minLength: 1,
      maxLength: 8,
      size: "small",
      selector: ({ window }) => window,
    }),
    cost: upTo(MAX_LIMIT),
    ban: upTo(MAX_WINDOW_SECONDS, 1),
    retryJitter: upTo(MAX_WINDOW_SECONDS, 1),
    response: fc.record(
      {
        status: fc.integer({ min: 400, max: 599 }),
        body: fc.oneof(fc.string(), fc.constant({ a: "\r\n" })),
        headers: VISIBLE.map((value) => ({ "X-Why": value })),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ["name", "limits"] },
);

const tally = fc.record({
  count: upTo(MAX_COUNT),
  reset: fc.double({ min: 0, max: 1, noNaN: true }),
  banMs: upTo(MAX_COUNT),
});

export interface Denial {
  readonly limited: Limited;
  readonly quotas: readonly Quota[];
}

/** A denial by any valid rule, with any state of its counters. */
export const denial: fc.Arbitrary<Denial> = fc
  .tuple(rule, fc.array(tally, { minLength: 8, maxLength: 8 }), upTo(MAX_COUNT))
  .map(([input, tallies, now]) => {
    const [rule] = defineConfig({ rules: [input] }).rules as readonly [Rule];
    const appliedRule = { rule, windows: rule.windows, identity: "a" };
    const entries = ruleCountersOf(appliedRule, "weir");
    const read = entries.map(({ counter }, index) => tallyOf(counter, tallies[index] as never));
    const quotas = quotasOf(entries, { admitted: false, tallies: read, now });
    const misfits = entries.flatMap(({ misfit }) => misfit ?? []);
    const verdict: RuleVerdict = { appliedRule, says: "denied", quotas, cost: 1 };
    const deniedBy = misfits.length > 0 ? { ...verdict, misfits } : verdict;
    const limited = { outcome: "limited", quotas, verdicts: [deniedBy], deniedBy } as const;
    if (misfits.length > 0) return { quotas, limited };
    const times = quotas.filter(isViolated).map((quota) => quota.retryAfterMs ?? 0);
    return { quotas, limited: { ...limited, retryAfterMs: Math.max(1, ...times) } };
  });

/** Returns a tally that wire.ts accepts. */
function tallyOf(
  { windowMs, ban }: Demand,
  { count, reset, banMs }: { count: number; reset: number; banMs: number },
): Tally {
  return { count, resetMs: 1 + Math.floor(reset * (windowMs - 1)), banMs: ban ? banMs : 0 };
}
