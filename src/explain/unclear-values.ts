import type { NamedCondition } from "../config/value-condition.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { createNameTest } from "../request/lenient-name.ts";
import { hasUnclearCommas, parametersIn } from "../request/request-values.ts";
import { quoted } from "./shown-value.ts";

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
  const { search, hasHiddenQuery } = request;
  if (hasHiddenQuery) return "Some servers find a second query in the URL.";
  const isNamed = createNameTest(name);
  const values: string[] = [];
  for (const [sent, value] of parametersIn(search)) {
    if (sent === name) values.push(value);
    else if (isNamed(sent)) return `Some servers do not distinguish ${quoted(sent)} from ${name}.`;
  }
  if (search.includes(";")) return 'Some servers separate parameters by ";".';
  if (values.length > 1) return `The parameter was sent ${values.length} times.`;
  return values[0] === "" ? EMPTY : OTHER_TEXT;
}
