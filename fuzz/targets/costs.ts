import fc from "fast-check";
import type { ComputedCost } from "../../src/config/cost.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import { MAX_LIMIT } from "../../src/config/window.ts";
import { bodyCostOf, customCostOf } from "../../src/request/custom-calls.ts";
import { createAsyncTarget } from "../property.ts";

const whole = fc.maxSafeNat().map((value) => value % (MAX_LIMIT + 1));
const bound = fc.option(whole, { nil: undefined });

/** Texts that are almost lengths. */
const length = fc.oneof(
  whole.map(String),
  fc.stringMatching(/^[-+]?0?[0-9,. ex]{0,18}$/),
  fc.string({ unit: "binary", maxLength: 20 }),
);

const scenario = fc.record({
  cost: fc.record({
    max: fc.option(
      whole.map((value) => value || 1),
      { nil: undefined },
    ),
    default: bound,
  }),
  limits: fc.array(whole, { minLength: 1, maxLength: 8 }),
  shards: fc.integer({ min: 1, max: 100 }),
  length: fc.option(length, { nil: null }),
  isChunked: fc.boolean(),
  hasBody: fc.boolean(),
  value: fc.oneof(
    whole,
    fc.double(),
    fc.anything({ withBigInt: true, withNullPrototype: true }),
    fc.constantFrom(-0, -1, MAX_LIMIT + 1, "5", null),
  ),
});

/** The target for costs that a request's body or a user's function determines. */
export const costsTarget = createAsyncTarget(
  "costs",
  "a cost from a request is a whole number up to max, and no cost of unknown length is free",
  scenario,
  async ({ cost: bounds, limits, shards, length, isChunked, hasBody, value }) => {
    const windows = limits.map((limit) => ({ limit })) as unknown as Window[];
    const costOf = (before: ComputedCost["before"]) =>
      ({ name: "api", shards, cost: { before, settle: undefined, ...bounds } }) as unknown as Rule;
    const fields: Record<string, string | null> = {
      "content-length": length,
      "transfer-encoding": isChunked ? "chunked" : null,
    };
    const headers = {
      get: (name: string) => fields[name] ?? null,
      has: (name: string) => typeof fields[name] === "string",
    } as Headers;
    let unreadable = 0;
    const count = () => void unreadable++;

    const bytes = bodyCostOf(costOf({ kind: "body" }), windows, { headers, hasBody }, count);
    checkCost(bytes, unreadable, bounds);
    const isStated = !isChunked && length !== null && /^[0-9]{1,15}$/.test(length);
    const isEmpty = !isChunked && length === null && !hasBody;
    if (isStated && bytes !== Math.min(Number(length), bounds.max ?? MAX_LIMIT)) {
      throw new Error(`a length of ${length} costs ${bytes}`);
    }
    if (unreadable !== (isStated || isEmpty ? 0 : 1)) throw new Error("logged the wrong lengths");
    if (unreadable > 0 && bytes === 0) throw new Error("a free body");

    unreadable = 0;
    const custom = costOf({ kind: "custom", name: "f" });
    const computed = await customCostOf(custom, async () => ({ value }), count);
    checkCost(computed, unreadable, bounds);
    if (unreadable === 0 && computed !== Math.min(value as number, bounds.max ?? MAX_LIMIT) + 0) {
      throw new Error(`a result costs ${computed}`);
    }
  },
);

function checkCost(
  cost: number | undefined,
  unreadable: number,
  bounds: { max?: number | undefined; default?: number | undefined },
): void {
  if (!Number.isInteger(cost) || Object.is(cost, -0) || (cost as number) < 0) {
    throw new Error(`the cost is ${cost}`);
  }
  const { max = MAX_LIMIT, default: standard = 0 } = bounds;
  if ((cost as number) > Math.max(max, standard)) throw new Error(`the cost is above ${max}`);
  const least = Math.max(bounds.max ?? 1, standard);
  if (unreadable > 0 && (cost as number) < least) throw new Error(`the cost is below ${least}`);
}
