/**
 * The header fields of a request or of a response, with names in lower case. `Headers` has this form.
 * The fields of a log have it too, and need no validation and no copy.
 */
export interface HeaderFields {
  get(name: string): string | null;
  has(name: string): boolean;
  keys(): Iterable<string>;
}
