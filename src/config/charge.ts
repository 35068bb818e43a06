import * as v from "valibot";
import { fields, integer, isRecord, listOf, parsed } from "./fields.ts";
import { parseHeaderName } from "./key-expression.ts";
import { MAX_LIMIT } from "./limits.ts";
import type { TextLike } from "./text-like.ts";

const COST = `a whole number from 0 to ${MAX_LIMIT}, or "header:NAME" of the origin's response`;
const COUNT = '"request", or { status: [401, 403] }';
const STATUSES = "a list of HTTP statuses";

/**
 * The quota that a request takes: a number, or the header field of the origin's response that holds
 * the number.
 */
export type CostInput = number | TextLike<"header:x-cost">;

/** Which requests are charged: all, or only those whose response has one of these HTTP statuses. */
export type CountInput = "request" | { readonly status: readonly number[] };

/** What a request costs: a number, or the lower-case name of a header of the origin's response. */
export type Cost = number | { readonly header: string };

export const CostSchema = parsed<CostInput, Cost>(parseCost, COST);

function parseCost(given: unknown): Cost | undefined {
  if (typeof given === "number") {
    return Number.isInteger(given) && given >= 0 && given <= MAX_LIMIT ? given : undefined;
  }
  if (typeof given !== "string" || !given.startsWith("header:")) return undefined;
  const header = parseHeaderName(given.slice(7));
  return header ? { header } : undefined;
}

const Status = fields({ status: listOf(integer(100, 599), STATUSES) }, COUNT);
const Word = v.pipe(
  v.custom<"request">((value) => value === "request", COUNT),
  v.transform(() => undefined),
);

/** The output is the list of charged statuses, or undefined if every request is charged. */
export const CountSchema = v.pipe(
  // The type of the input selects the schema. A union is not used, because its message would not
  // contain the path of a fault within the object.
  v.lazy<v.GenericSchema<CountInput, undefined | { status: number[] }>>((input) =>
    isRecord(input) ? Status : Word,
  ),
  v.transform((count): readonly number[] | undefined => count?.status),
);
