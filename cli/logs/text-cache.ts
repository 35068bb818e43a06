/**
 * The maximum length of a cached text, in characters. A cache of 10,000 longer texts could need more memory
 * than it saves.
 */
const MAX_CACHED = 512;

/**
 * Returns a text with memory of its own. A part of a text, such as a field of a line, keeps the whole text
 * alive in V8, so a single waiting request would keep 64 KiB.
 */
export function ownText(part: string): string {
  // Concatenating makes a new text, of which the result is a part. V8 has no other way to copy a text.
  return ` ${part}`.slice(1);
}

/**
 * Values that are computed from texts, for texts that repeat. Keeps the texts of the recent past: when there
 * are many, it forgets those that were not used since half of them came.
 */
export class TextCache<Value> {
  readonly #create: (text: string) => Value;
  readonly #max: number;
  #recent = new Map<string, Value>();
  #earlier = new Map<string, Value>();

  /** @param max the maximum number of cached values */
  constructor(max: number, create: (text: string) => Value) {
    this.#create = create;
    this.#max = max;
  }

  get(part: string): Value {
    const known = this.#recent.get(part);
    return known === undefined ? this.#add(part) : known;
  }

  #add(part: string): Value {
    const text = ownText(part);
    const value = this.#earlier.get(part) ?? this.#create(text);
    if (text.length > MAX_CACHED) return value;
    this.#recent.set(text, value);
    if (this.#recent.size * 2 >= this.#max) {
      this.#earlier = this.#recent;
      this.#recent = new Map();
    }
    return value;
  }
}
