/**
 * The header fields of a request or of a response, with names in lower case. `Headers` has this form.
 * The fields of a log have it too, and need no validation and no copy.
 */
export interface HeaderFields {
  get(name: string): string | null;
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/** Matches the characters that {@link foldHeaderName} replaces. */
const SEPARATOR = "[^a-z\\d]";
const SEPARATORS = new RegExp(SEPARATOR, "g");

/**
 * Returns the form in which servers may see the name of a header field. Servers that pass header fields as
 * variables, as CGI does, do not distinguish `_` from `-`, and some of them replace every character that is
 * no letter or digit.
 *
 * @param name a name in lower case
 */
export function foldHeaderName(name: string): string {
  return name.replace(SEPARATORS, "_");
}

/**
 * Returns a pattern that matches each name with the folded form of one of the given names. Testing it is
 * faster than folding a name.
 *
 * @param names names in lower case, with `-` as the only separator
 */
export function namePattern(...names: readonly string[]): RegExp {
  return new RegExp(`^(?:${names.join("|").replaceAll("-", SEPARATOR)})$`);
}

/** Returns the names of the fields that match a pattern of {@link namePattern}. */
export function fieldsNamed(pattern: RegExp, headers: HeaderFields): string[] {
  const found: string[] = [];
  // Every request is searched, and a loop takes half the time of a filtered copy of all names.
  for (const name of headers.keys()) if (pattern.test(name)) found.push(name);
  return found;
}
