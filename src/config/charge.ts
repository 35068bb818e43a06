import * as v from "valibot";
import { fields, integer, isRecord, listOf } from "./fields.ts";
import { parseHeaderName } from "./key-expression.ts";
import { MAX_LIMIT } from "./quota.ts";

const COST = `a whole number from 0 to ${MAX_LIMIT}, or "header:NAME" of the origin's response`;
const COUNT = '"request", or { status: [401, 403] }';
const STATUSES = "a list of HTTP statuses";

/** What a request costs: known before, or read from a field of the origin's response. */
export type Cost = number | { readonly header: string };

export const CostSchema = v.pipe(
  v.union([v.string(), v.number()], COST),
  v.rawTransform<string | number, Cost>(({ dataset, addIssue, NEVER }) => {
    const cost = parseCost(dataset.value);
    if (cost !== undefined) return cost;
    addIssue({ message: COST });
    return NEVER;
  }),
);

function parseCost(given: string | number): Cost | undefined {
  if (typeof given === "number") {
    return Number.isInteger(given) && given >= 0 && given <= MAX_LIMIT ? given : undefined;
  }
  const header = given.startsWith("header:") ? parseHeaderName(given.slice(7)) : undefined;
  return header ? { header } : undefined;
}

const Status = fields({ status: listOf(integer(100, 599), STATUSES) }, COUNT);
const Word = v.pipe(
  v.picklist(["request"], COUNT),
  v.transform(() => undefined),
);

/** The statuses whose responses are charged; undefined for every request, whatever comes of it. */
export const CountSchema = v.pipe(
  // By its shape, and not by a union, which would say nothing of where in an object the fault is.
  v.lazy<
    v.GenericSchema<
      "request" | { readonly status: readonly number[] },
      undefined | { status: number[] }
    >
  >((input) => (isRecord(input) ? Status : Word)),
  v.transform((count): readonly number[] | undefined => count?.status),
);
