/** The maximum length of a pointer, in UTF-16 code units, and the maximum number of its names. */
const MAX_LENGTH = 256;
const MAX_NAMES = 8;

/**
 * Matches a JSON Pointer (RFC 6901) to a claim. `~0` stands for `~`, and `~1` for `/`. A name cannot
 * be empty, because `/https://example.com/plan` without escapes would be four names. A name also
 * cannot contain separators, quotes or brackets, because such a text is usually a list of keys or a
 * path in another notation.
 */
const POINTER = /^(?:\/(?:[^~/\s|,;&+"'`()<>[\]{}\\\p{Cc}]|~[01])+)+$/u;

/**
 * Parses a pointer to a claim, such as `/app_metadata/plan`.
 *
 * @returns the names of the properties that lead to the claim; undefined if the text is no pointer
 */
export function parseClaimPointer(text: string): readonly string[] | undefined {
  if (text.length > MAX_LENGTH || !POINTER.test(text)) return undefined;
  const names = text.slice(1).split("/");
  // RFC 6901 demands this order: `~01` stands for `~1`.
  return names.length > MAX_NAMES
    ? undefined
    : names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}
