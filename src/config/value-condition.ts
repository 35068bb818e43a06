import * as v from "valibot";
import { differentNames } from "./different-names.ts";
import { faultText } from "./fault-text.ts";
import { isRecord, mapOf, parsed } from "./fields.ts";
import { MAX_KEY_LENGTH, parseHeaderName } from "./key-expression.ts";

/** A value that a header field or a query parameter may have: a text, or the start of a text. */
export type ValuePattern = string | { readonly prefix: string };

/**
 * The value that a header field or a query parameter must have. `true`: any value. `false`: the
 * request does not have the field. A text: this value. `{ prefix }`: a value that begins with this
 * text. A list: one of its elements.
 */
export type ValueInput = boolean | ValuePattern | readonly ValuePattern[];

/** A field or a parameter, and the value that it must have. */
export interface NamedCondition {
  /** In lower case, if it is the name of a header field. */
  readonly name: string;
  readonly expected: boolean | readonly ValuePattern[];
}

const VALUE = faultText(
  'true (present), false (absent), a text without spaces at its ends, { prefix: "…" }, or a list of texts and prefixes',
);
const HEADERS = faultText(
  'an object of header names and values, such as { "x-plan": "free" }, at least one',
);
const QUERY = faultText(
  'an object of parameter names and values, such as { debug: "1" }, at least one',
);

/**
 * Upper and lower case do not differ in the names of headers, so two such conditions concern one
 * header.
 */
export const SAME_HEADER = faultText("is the same header. Remove one of the two");

function parseValue(value: unknown): NamedCondition["expected"] | undefined {
  if (typeof value === "boolean") return value;
  const patterns = [value].flat() as unknown[];
  return patterns.length > 0 && patterns.every(isPattern) ? patterns : undefined;
}

function isPattern(value: unknown): value is ValuePattern {
  if (typeof value === "string") return isValue(value, value.trim());
  if (!isRecord(value) || Object.keys(value).length !== 1) return false;
  return typeof value.prefix === "string" && isValue(value.prefix, value.prefix.trimStart());
}

/** @param trimmed the text without the spaces at the ends that no value in a request has */
function isValue(text: string, trimmed: string): boolean {
  return text !== "" && text === trimmed && text.length <= MAX_KEY_LENGTH;
}

const Value = parsed<ValueInput, NamedCondition["expected"]>(parseValue, VALUE);

/** The schema of the name of a header, in any case. */
export const HeaderName = v.custom<string>(
  (name) => parseHeaderName(String(name)) !== undefined,
  faultText("the name of a header"),
);
const ParameterName = v.custom<string>(Boolean, faultText("the name of a query parameter"));

/** The schemas of the conditions on values that clients send. */
export const valueConditions = {
  headers: v.optional(namedConditions(HeaderName, parseHeaderName, HEADERS)),
  query: v.optional(namedConditions(ParameterName, (name) => name, QUERY)),
};

/** @param parse returns the name as Weir compares it */
function namedConditions(
  schema: v.GenericSchema<string, string>,
  parse: (name: string) => string | undefined,
  allowed: string,
) {
  return v.pipe(
    mapOf(schema, Value, allowed),
    differentNames(parse, SAME_HEADER),
    v.transform((map) =>
      [...map].map(
        ([name, expected]): NamedCondition => ({
          name: parse(name) as string,
          expected,
        }),
      ),
    ),
  );
}
