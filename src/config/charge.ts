import * as v from "valibot";
import { type CostInput, CostSchema, NEEDS_SETTLE } from "./cost.ts";
import { faultText } from "./fault-text.ts";
import { checkOf, type Fields } from "./field-checks.ts";
import { boolean, fields, integer, isRecord, listOf } from "./fields.ts";

const COUNT = faultText('"request", or { status: [401, 403] }');
const STATUSES = faultText("a list of HTTP statuses");

/** Which requests are charged, by the HTTP status of their response. */
export interface CountStatusInput {
  /**
   * The HTTP statuses (100 to 599) of the responses whose requests are charged.
   *
   * @example [401, 403]
   */
  readonly status: readonly number[];
  /**
   * `true`: a request is charged before it is forwarded, and gets its quota back if its response
   * has another status. So concurrent requests cannot exceed the limit. `false`: a request is
   * charged after its response arrives.
   *
   * @default false
   */
  readonly reserve?: boolean | undefined;
}

/** Which requests are charged: all, or only those whose response has one of these HTTP statuses. */
export type CountInput = "request" | CountStatusInput;

/** The fields of a rule that determine how much quota a request takes. */
export interface ChargeFields {
  /**
   * How much quota a request takes:
   *
   * - a whole number from 0 to 999999999999999
   * - `"custom:NAME"`: the result of your function `custom.costs.NAME`, a top-level field
   * - `"body:bytes"`: the length of the request's body
   * - `"header:NAME"`: the number in that header field of the origin's response
   * - an object, for bounds, or to charge an estimate before the request and settle it by the
   *   response: see {@link ComputedCostInput}
   *
   * A cost that only the response determines is charged after the response arrives, so concurrent
   * requests can exceed the limit in total.
   *
   * @default 1
   * @example "header:x-tokens-used"
   * @example { from: "custom:depth", max: 100 }
   * @example { reserve: 1200, settle: "header:x-tokens-used" }
   */
  readonly cost?: CostInput | undefined;
  /**
   * Which requests are charged: `"request"` for every request, or only requests whose responses have
   * one of these HTTP statuses (100 to 599). If statuses are set, Weir charges a request after its
   * response arrives, so concurrent requests can exceed the limit in total. With `reserve: true`,
   * Weir charges a request before it is forwarded, and gives the quota back if the response has
   * another status.
   *
   * @default "request"
   * @example { status: [401, 403] }
   */
  readonly count?: CountInput | undefined;
}

/** Which requests are charged, by the HTTP status of their response. */
export interface StatusCount {
  readonly statuses: readonly number[];
  /** Whether a request is charged before it is forwarded. */
  readonly reserve: boolean;
}

const Status = v.pipe(
  fields(
    {
      status: listOf(integer(100, 599), STATUSES),
      reserve: v.optional(boolean(), false),
    },
    COUNT,
  ),
  v.transform(({ status, reserve }): StatusCount => ({ statuses: status, reserve })),
);
const Word = v.pipe(
  v.custom<"request">((value) => value === "request", COUNT),
  v.transform(() => undefined),
);

/** The output is undefined if every request is charged. */
// The type of the input selects the schema. A union is not used, because its message would not
// contain the path of a fault within the object.
export const CountSchema = v.lazy<v.GenericSchema<CountInput, StatusCount | undefined>>((input) =>
  isRecord(input) ? Status : Word,
);

/** The schema of {@link ChargeFields}. */
export const chargeFields = {
  cost: v.optional(CostSchema, 1),
  count: v.optional(CountSchema, "request"),
};

/**
 * Checks that a cost with a reserve has `settle`. A rule that only programs use needs no `settle`,
 * because the programs settle the reserve.
 */
export function checkReserve<Output>() {
  return checkOf<Output>(({ for: audience, cost }, refuse) => {
    if (audience !== "all" || !isRecord(cost)) return;
    if (typeof reserveIn(cost) !== "number" || cost.from !== undefined) return;
    if (cost.settle === undefined) refuse(NEEDS_SETTLE, "cost", "settle");
  });
}

/**
 * Returns the reserve of a cost that may have faults. A parsed cost stores the reserve in `before`, and
 * a number there is always a reserve.
 */
export function reserveIn(cost: Fields): unknown {
  return cost.before ?? cost.reserve;
}
