/** The maximum length of a cached text, in characters. Longer texts would need much memory. */
const MAX_CACHED = 512;

/** V8 copies shorter parts. */
const MIN_PART = 13;

/**
 * Returns a text with memory of its own. A part of a text, such as a field of a line, keeps the whole text
 * alive in V8, so a single waiting request would keep 64 KiB.
 */
export function ownText(part: string): string {
  if (part.length < MIN_PART) return part;
  // Concatenating makes a new text, of which the result is a part. V8 has no other way to copy a text.
  return ` ${part}`.slice(1);
}

/** The number of places. Must be a power of two. */
const PLACES = 1024;

/**
 * Values that are computed from texts, for texts that repeat, such as user agents. Each text has one place,
 * where it replaces the text before it. A `Map` with several thousand texts would take three times as
 * long, and most of that for texts that do not repeat.
 */
export class TextCache<Value> {
  readonly #create: (text: string) => Value;
  readonly #texts = new Array<string | undefined>(PLACES).fill(undefined);
  readonly #values = new Array<Value | undefined>(PLACES).fill(undefined);

  constructor(create: (text: string) => Value) {
    this.#create = create;
  }

  get(part: string): Value {
    const place = placeOf(part);
    if (this.#texts[place] === part) return this.#values[place] as Value;
    const text = ownText(part);
    const value = this.#create(text);
    if (text.length > MAX_CACHED) return value;
    this.#texts[place] = text;
    this.#values[place] = value;
    return value;
  }
}

/** Returns a number below `PLACES` from the length and eight or nine characters of a text. */
function placeOf(text: string): number {
  const step = (text.length >> 3) | 1;
  let hash = text.length;
  for (let index = text.length - 1; index >= 0; index -= step) {
    hash = (Math.imul(hash, 31) + text.charCodeAt(index)) | 0;
  }
  return (hash ^ (hash >>> 10)) & (PLACES - 1);
}
