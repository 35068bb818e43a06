/**
 * The header fields of a request or of a response, with names in lower case. `Headers` has this form.
 * The fields of a log have it too, and need no validation and no copy.
 */
export interface HeaderFields {
  get(name: string): string | null;
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/**
 * Returns the form in which servers may see the name of a header field. Servers that pass header fields as
 * variables, as CGI does, do not distinguish `_` from `-`, and some of them replace every character that is
 * no letter or digit.
 *
 * @param name a name in lower case
 */
export function foldHeaderName(name: string): string {
  return name.replace(/[^a-z\d]/g, "_");
}

/** Returns the names of the fields that servers may read as fields with one of these folded names. */
export function fieldsNamed(folded: ReadonlySet<string>, headers: HeaderFields): string[] {
  return [...headers.keys()].filter((name) => folded.has(foldHeaderName(name)));
}
