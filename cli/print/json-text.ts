/** Characters that JSON leaves as they are, but that a terminal obeys or that change the direction of a text. */
const UNSAFE = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Returns a value as JSON that is safe to print to a terminal. It has the same value when it is parsed. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, undefined, 2).replace(
    UNSAFE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
