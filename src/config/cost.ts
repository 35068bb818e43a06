import * as v from "valibot";
import { faultText } from "./faults.ts";
import {
  boolean,
  checkOf,
  type Fields,
  fields,
  integer,
  isRecord,
  type LiteralUnion,
  listOf,
  parsed,
  parsedText,
} from "./fields.ts";
import { parseHeaderName } from "./key.ts";
import { MAX_LIMIT } from "./window.ts";

const NUMBER = faultText(() => `a whole number from 0 to ${MAX_LIMIT}`);
const OF_REQUEST = faultText('"custom:NAME" or "body:bytes"');
const OF_RESPONSE = faultText('"header:NAME" or "custom:NAME" of the response');
const COST = faultText(
  () =>
    `${NUMBER}, ${OF_REQUEST} of the request, "header:NAME" of the origin's response, or an object such as { from: "custom:NAME", max: 100 }`,
);
export const NEEDS_SETTLE = faultText(
  "reserve needs settle. Without settle, write the cost itself, or from",
);
const RESERVE = faultText(() => `a whole number from 1 to ${MAX_LIMIT}, or ${OF_REQUEST}`);

/** The source of a cost that is charged before the request is forwarded. */
export type RequestCostInput = LiteralUnion<"custom:depth" | "body:bytes">;

/** The source of a cost that is charged after the response has arrived. */
export type ResponseCostInput = LiteralUnion<"header:x-cost" | "custom:usage">;

/** A cost that Weir computes, with bounds. One of `from`, `reserve` and `settle` is required. */
export interface ComputedCostInput {
  /**
   * The source of a cost that is known before the response: `"custom:NAME"` for the result of your function
   * `custom.costs.NAME`, or `"body:bytes"` for the length of the body. Cannot be set together with `reserve` or
   * `settle`.
   *
   * @default none: `reserve` or `settle` determines the cost
   * @example "custom:depth"
   */
  readonly from?: RequestCostInput | undefined;
  /**
   * The cost that is charged before the request is forwarded, and corrected by `settle`: a whole number from 1 to
   * 999999999999999, `"custom:NAME"` for the result of your function `custom.costs.NAME`, or `"body:bytes"` for the
   * length of the body. Needs `settle`. With `for: "programs"`, the reserve is a number and needs no `settle`,
   * because the program settles it.
   *
   * @default nothing is charged before the response
   * @example 1200
   */
  readonly reserve?: number | RequestCostInput | undefined;
  /**
   * The source of the final cost: `"header:NAME"` for the number in the header NAME of the origin's response, or
   * `"custom:NAME"` for the result of your function `custom.settle.NAME`. If `reserve` is set, the difference is
   * charged or given back; otherwise, the whole cost is charged after the response arrives.
   *
   * @default none: the cost before the request is final
   * @example "header:x-tokens-used"
   */
  readonly settle?: ResponseCostInput | undefined;
  /**
   * The maximum cost of a request: a whole number from 1 to 999999999999999. A higher cost counts as this cost.
   *
   * @default no maximum
   */
  readonly max?: number | undefined;
  /**
   * The cost if a complete response states no cost: a whole number from 0 to 999999999999999, at most `max`. If the
   * response breaks off before it states the cost, the reserve stays charged; without a reserve, `max` is charged. If
   * the value of `from` or `reserve` is unknown, at least `max` is charged, because clients can make it unknown.
   *
   * @default the reserve, else 1
   */
  readonly default?: number | undefined;
}

/**
 * The quota that a request takes: a number, or the source of the number. A text is the short form of an object:
 * `"custom:NAME"` and `"body:bytes"` mean `{ from }`, and `"header:NAME"` means `{ settle }`.
 */
export type CostInput =
  | number
  | LiteralUnion<"custom:depth" | "body:bytes" | "header:x-cost">
  | ComputedCostInput;

/** The source of a cost that is charged before the request is forwarded: a function, or the body's length. */
export type RequestCost =
  | { readonly kind: "custom"; readonly name: string }
  | { readonly kind: "body" };

/** The source of a cost that is charged after the response has arrived: a header (lower case) or a function. */
export interface ResponseCost {
  readonly kind: "header" | "custom";
  readonly name: string;
}

/** A cost that Weir computes for each request. */
export interface ComputedCost {
  /** The charge before the response; undefined if nothing is charged then. A number is a reserve. */
  readonly before: number | RequestCost | undefined;
  /** The source of the final cost; undefined if `before` is final, or if programs settle the rule's reserve. */
  readonly settle: ResponseCost | undefined;
  /** The maximum cost; undefined if there is none. */
  readonly max: number | undefined;
  /** The cost if the true cost is unknown; undefined if the configuration has none. */
  readonly default: number | undefined;
}

/** The cost of a request under a rule. */
export type Cost = number | ComputedCost;

const Text = parsed<number | string, Cost>(parseCost, COST);

function parseCost(given: unknown): Cost | undefined {
  if (typeof given === "number") return isInteger(given, 0) ? given : undefined;
  if (typeof given !== "string") return undefined;
  const before = parseRequestCost(given);
  const settle = given.startsWith("header:") ? parseResponseCost(given) : undefined;
  return before || settle ? { before, settle, max: undefined, default: undefined } : undefined;
}

function parseReserve(given: unknown): number | RequestCost | undefined {
  if (typeof given === "number") return isInteger(given, 1) ? given : undefined;
  return typeof given === "string" ? parseRequestCost(given) : undefined;
}

function isInteger(value: number, min: number): boolean {
  return Number.isInteger(value) && value >= min && value <= MAX_LIMIT;
}

function parseRequestCost(text: string): RequestCost | undefined {
  if (text === "body:bytes") return { kind: "body" };
  const [, name] = /^custom:(\w+)$/.exec(text) ?? [];
  return name === undefined ? undefined : { kind: "custom", name };
}

function parseResponseCost(text: string): ResponseCost | undefined {
  const [, kind, given = ""] = /^(header|custom):(.*)$/s.exec(text) ?? [];
  if (kind === "custom") return /^\w+$/.test(given) ? { kind, name: given } : undefined;
  const name = kind && parseHeaderName(given);
  return name ? { kind: "header", name } : undefined;
}

const Computed = v.pipe(
  fields(
    {
      from: v.optional(parsedText(parseRequestCost, OF_REQUEST)),
      reserve: v.optional(parsed<number | string, number | RequestCost>(parseReserve, RESERVE)),
      settle: v.optional(parsedText(parseResponseCost, OF_RESPONSE)),
      max: v.optional(integer(1, MAX_LIMIT)),
      default: v.optional(integer(0, MAX_LIMIT)),
    },
    COST,
  ),
  checkOf((cost, refuse) => {
    const { from, reserve, settle, max } = cost;
    if (from !== undefined && reserve !== undefined) {
      refuse("conflict", faultText("a cost has either from, or reserve and settle"), "reserve");
    } else if (from !== undefined && settle !== undefined) {
      refuse(
        "conflict",
        faultText("with settle, write reserve in place of from: the difference is settled"),
        "from",
      );
    } else if (reserve !== undefined && typeof reserve !== "number" && settle === undefined) {
      // The rule's `for` decides whether a number needs `settle`: see `checkCost` in rule.ts.
      refuse("missing", NEEDS_SETTLE, "settle");
    } else if (from === undefined && reserve === undefined && settle === undefined) {
      refuse("missing", faultText("a cost needs from, or settle, or reserve and settle"));
    }
    if (typeof max !== "number") return;
    for (const field of ["reserve", "default"]) {
      const value = cost[field];
      if (typeof value === "number" && value > max)
        refuse(
          "conflict",
          faultText(() => `${field} must be at most max, ${max}`),
          field,
        );
    }
  }),
  v.transform(
    (cost): ComputedCost => ({
      before: cost.from ?? cost.reserve,
      settle: cost.settle,
      max: cost.max,
      default: cost.default,
    }),
  ),
);

/** The schema of {@link CostInput}. */
// The type of the input selects the schema. The message of a union would lack the path of a fault within the object.
export const CostSchema = v.lazy<v.GenericSchema<CostInput, Cost>>((input) =>
  isRecord(input) ? Computed : Text,
);

/**
 * Returns the reserve of a cost that may have faults. A parsed cost has the reserve in `before`, where a number is
 * always a reserve.
 */
export function reserveIn(cost: Fields): unknown {
  return cost.before ?? cost.reserve;
}

const COUNT = faultText('"request", or { status: [401, 403] }');
const STATUSES = faultText("a list of HTTP statuses");

/** Selects the requests that are charged, by the HTTP status of their response. */
export interface CountStatusInput {
  /**
   * The HTTP statuses (100 to 599) of the responses whose requests are charged.
   *
   * @example [401, 403]
   */
  readonly status: readonly number[];
  /**
   * `true`: a request is charged before it is forwarded, and gets its quota back if its response has no such status.
   * So concurrent requests cannot exceed the limit. `false`: a request is charged after its response arrives.
   *
   * @default false
   */
  readonly reserve?: boolean | undefined;
}

/** The requests that are charged: all, or only requests whose response has one of these HTTP statuses. */
export type CountInput = "request" | CountStatusInput;

/** The requests that are charged, by the HTTP status of their response. */
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
// The type of the input selects the schema. The message of a union would lack the path of a fault within the object.
export const CountSchema = v.lazy<v.GenericSchema<CountInput, StatusCount | undefined>>((input) =>
  isRecord(input) ? Status : Word,
);
