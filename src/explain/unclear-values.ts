import type { NamedCondition } from "../config/value-condition.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { createNameTest } from "../request/lenient-name.ts";
import { hasUnclearCommas } from "../request/request-values.ts";
import { sentParameters } from "./sent-parameters.ts";
import { quoted } from "./shown-value.ts";

/** The maximum number of sent names that are compared with the name of a condition. */
const MAX_NAMES = 100;
const OTHER_TEXT =
  "Servers that ignore details, such as case, spaces or a second encoding, may read an expected text.";
const EMPTY = "Some servers take an empty value for an absent one.";

/** Returns why it is unknown whether a condition on a header field holds, as a sentence. */
export function unclearHeader({ name }: NamedCondition, { headers }: CanonicalRequest): string {
  const value = headers.get(name);
  const fold = (each: string) => each.replace(/[^a-z\d]/g, "_");
  const other = [...headers.keys()].find((each) => each !== name && fold(each) === fold(name));
  if (other !== undefined) return `Some servers do not distinguish ${quoted(other)} from ${name}.`;
  if (value?.trim() === "") return EMPTY;
  if (value !== null && hasUnclearCommas(name, value)) {
    return "The value has a comma, so the field may have been sent twice.";
  }
  return OTHER_TEXT;
}

/** Returns why it is unknown whether a condition on a query parameter holds, as a sentence. */
export function unclearParameter({ name }: NamedCondition, request: CanonicalRequest): string {
  if (request.hasHiddenQuery) return "Some servers find a second query in the URL.";
  const sent = sentParameters(request);
  const isNamed = createNameTest(name);
  for (const other of [...sent.keys()].slice(0, MAX_NAMES)) {
    if (other !== name && isNamed(other)) {
      return `Some servers do not distinguish ${quoted(other)} from ${name}.`;
    }
  }
  if (request.search.includes(";")) return 'Some servers separate parameters by ";".';
  const { values, count } = sent.get(name) ?? { values: [], count: 0 };
  if (count > 1) return `The parameter was sent ${count} times.`;
  return values[0] === "" ? EMPTY : OTHER_TEXT;
}
