/**
 * The maximum length of one event, in UTF-16 code units. Longer events are skipped, because the
 * memory of an isolate is limited. Only the events of generated images and of very long answers can
 * be nearly as long.
 */
export const MAX_EVENT_LENGTH = 2 * 1024 * 1024;

/** Parses a stream of server-sent events. The text of the stream arrives in pieces of any length. */
interface EventStreamParser {
  /** @param text the next piece of the stream, decoded from UTF-8 and without a byte order mark */
  push(text: string): void;
  /**
   * Ends the stream. If the blank line after the last event is missing, the event still counts.
   * Browsers ignore such an event, but some servers omit the line.
   */
  end(): void;
}

/**
 * Creates a parser of server-sent events, as the HTML standard defines them. It ignores all fields
 * except `data`. The time is linear in the length of the stream, even if every piece is a single
 * character, because no text is searched twice.
 *
 * @param onData gets the data of each event
 */
export function createEventStreamParser(onData: (data: string) => void): EventStreamParser {
  // The pieces of the current line, and the data lines of the current event.
  let line: string[] = [];
  let lineLength = 0;
  let data: string[] = [];
  /**
   * The length of the current event's data; Infinity if the event is too long and therefore
   * skipped.
   */
  let dataLength = 0;
  let isAfterReturn = false;

  function addToLine(text: string): void {
    lineLength += text.length;
    if (lineLength + dataLength <= MAX_EVENT_LENGTH) line.push(text);
    else {
      line = [];
      data = [];
      dataLength = Number.POSITIVE_INFINITY;
    }
  }

  function endLine(): void {
    if (lineLength === 0) {
      endEvent();
      return;
    }
    const value = dataOf(line.length === 1 ? (line[0] as string) : line.join(""));
    if (value !== undefined) {
      data.push(value);
      // The line break counts too, so that a million empty lines are also too long.
      dataLength += value.length + 1;
    }
    line = [];
    lineLength = 0;
  }

  function endEvent(): void {
    if (data.length > 0) onData(data.length === 1 ? (data[0] as string) : data.join("\n"));
    data = [];
    dataLength = 0;
  }

  return {
    push(text) {
      if (text === "") return;
      let start = isAfterReturn && text.startsWith("\n") ? 1 : 0;
      isAfterReturn = text.endsWith("\r");
      let feed = indexOrEnd(text, "\n", start);
      let carriage = indexOrEnd(text, "\r", start);
      while (feed < text.length || carriage < text.length) {
        const end = Math.min(feed, carriage);
        if (end > start) addToLine(text.slice(start, end));
        endLine();
        start = carriage < feed && feed === carriage + 1 ? end + 2 : end + 1;
        if (feed < start) feed = indexOrEnd(text, "\n", start);
        if (carriage < start) carriage = indexOrEnd(text, "\r", start);
      }
      if (start < text.length) addToLine(text.slice(start));
    },
    end() {
      if (lineLength > 0) endLine();
      endEvent();
    },
  };
}

/**
 * @returns the index of the character at or after `start`; the length of the text if there is none
 */
function indexOrEnd(text: string, character: string, start: number): number {
  const index = text.indexOf(character, start);
  return index === -1 ? text.length : index;
}

/** Returns the value of a line such as `data: {}`; undefined if it is another field or a comment. */
function dataOf(line: string): string | undefined {
  if (!line.startsWith("data")) return undefined;
  if (line.length === 4) return "";
  if (line[4] !== ":") return undefined;
  return line.slice(line[5] === " " ? 6 : 5);
}

// Reads the fields of a JSON object without parsing the values. JSON.parse needs up to a quarter of a second for
// a megabyte of names, and all other requests of the isolate would wait for it. This reader takes time in
// proportion to the bytes, whatever they contain.

/** The maximum number of fields in an object. The APIs of language models have less than a hundred. */
export const MAX_FIELDS = 256;
/** The maximum depth of lists and objects inside each other. */
export const MAX_DEPTH = 100;
/**
 * The maximum number of bytes outside of texts, such as numbers, brackets and quotes. Reading them takes several
 * times as long as reading texts. A body of messages has only a few of them for each text.
 */
export const MAX_OUTSIDE_TEXTS = 64 * 1024;
/** The maximum length of a name or of a number, in bytes. Longer names are none that Weir reads. */
const MAX_TEXT = 128;

/** How many bytes of a text are read one by one before the runtime searches its end. */
const NEAR = 16;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** What a byte can be, except inside a text. Each kind is a bit. */
const OF_NUMBER = 1;
/** A letter that no number has. */
const OF_WORD = 2;
const SPACE = 4;
const SEPARATOR = 8;
const OPENING = 16;
const CLOSING = 32;
const QUOTING = 64;
const INVALID = 128;
const KINDS = Uint8Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[\d.+eE-]/.test(character)) return OF_NUMBER;
  if (/[A-Za-z]/.test(character)) return OF_WORD;
  if (/[\t\n\r ]/.test(character)) return SPACE;
  if (/[,:]/.test(character)) return SEPARATOR;
  if (/[[{]/.test(character)) return OPENING;
  if (/[\]}]/.test(character)) return CLOSING;
  return code === QUOTE ? QUOTING : INVALID;
});

/** The value of a field. */
export interface JsonValue {
  readonly bytes: Uint8Array;
  readonly isObject: boolean;
  readonly isList: boolean;
  /** The number of values in a list. */
  readonly items: number;
  /** Whether a list has only numbers, or nothing. */
  readonly hasOnlyNumbers: boolean;
  /** A number, a word or a text; undefined for any other value, and for long ones. */
  readonly scalar: unknown;
}

/**
 * Returns the fields of a JSON object. The names are folded as servers written in Go, C# or Java do: they ignore
 * case, and treat `ſ` as `s`, the Kelvin sign as `k`, and `ı` and `İ` as `i`.
 *
 * @returns undefined if the bytes are not a JSON object, if two names are equal, or if the object exceeds
 * {@link MAX_FIELDS}, {@link MAX_DEPTH} or {@link MAX_OUTSIDE_TEXTS}. If two names are equal, some servers use the
 * first field, others use the last one, and others merge them
 */
export function readFields(bytes: Uint8Array): ReadonlyMap<string, JsonValue> | undefined {
  const fields = new Map<string, JsonValue>();
  const reader = new Reader(bytes);
  if (!reader.takes(OPEN_OBJECT)) return undefined;
  if (reader.takes(CLOSE_OBJECT)) return reader.isAtEnd() ? fields : undefined;
  do {
    const name = reader.name();
    if (name === undefined || !reader.takes(COLON)) return undefined;
    const value = reader.value();
    if (!value || fields.has(name) || fields.size === MAX_FIELDS) return undefined;
    fields.set(name, value);
  } while (reader.takes(COMMA));
  return reader.takes(CLOSE_OBJECT) && reader.isAtEnd() ? fields : undefined;
}

/** Reads JSON from its start to its end. */
class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;
  #outsideTexts = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    // A byte order mark.
    if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) this.#at = 3;
  }

  isAtEnd(): boolean {
    this.#skipSpace();
    return this.#at === this.#bytes.length;
  }

  /** Reads this byte, if it is the next one that is not white space. */
  takes(code: number): boolean {
    this.#skipSpace();
    if (this.#bytes[this.#at] !== code) return false;
    this.#at++;
    return true;
  }

  /** Reads a name, and folds it. A long name stays as it is. @returns undefined if there is none */
  name(): string | undefined {
    if (!this.takes(QUOTE)) return undefined;
    const start = this.#at - 1;
    this.#at = endOfText(this.#bytes, this.#at) + 1;
    const bytes = this.#bytes.subarray(start, this.#at);
    if (bytes.length > MAX_TEXT) return `${start}`;
    const name = parse(bytes);
    return typeof name === "string" ? fold(name) : undefined;
  }

  /** Reads a value. @returns undefined if there is none, or if it is too deep */
  value(): JsonValue | undefined {
    this.#skipSpace();
    const start = this.#at;
    const code = this.#bytes[start];
    const isObject = code === OPEN_OBJECT;
    const isList = code === OPEN_LIST;
    let [items, hasOnlyNumbers] = [0, true];
    if (isObject || isList) {
      const nested = endOfNested(this.#bytes, start, MAX_OUTSIDE_TEXTS - this.#outsideTexts);
      if (!nested) return undefined;
      this.#at = nested.end;
      this.#outsideTexts += nested.outsideTexts;
      ({ items, hasOnlyNumbers } = nested);
    } else if (code === QUOTE) this.#at = endOfText(this.#bytes, start + 1) + 1;
    else this.#skip(OF_NUMBER | OF_WORD);
    if (this.#at === start || this.#at > this.#bytes.length) return undefined;
    const bytes = this.#bytes.subarray(start, this.#at);
    const scalar = isObject || isList || bytes.length > MAX_TEXT ? undefined : parse(bytes);
    const isText = code === QUOTE;
    if (!isObject && !isList && !isText && scalar === undefined) return undefined;
    return { bytes, isObject, isList, items, hasOnlyNumbers, scalar };
  }

  #skipSpace(): void {
    this.#skip(SPACE);
  }

  /** Skips bytes of these kinds, but not more than are allowed. */
  #skip(kinds: number): void {
    const end = endOfRun(this.#bytes, this.#at, kinds, MAX_OUTSIDE_TEXTS - this.#outsideTexts);
    this.#outsideTexts += end - this.#at;
    this.#at = end;
  }
}

/** Folds a name as the servers do that fold most. */
function fold(name: string): string {
  return name.replace(/[ıİ]/g, "i").toLowerCase().replaceAll("ſ", "s");
}

/** @returns undefined if the bytes are not JSON */
function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

// The next functions read one byte after the other, and their variables are local, because a field of an object
// would take several times as long.

/** Returns the index after all bytes of these kinds, or after the maximum number of bytes. */
function endOfRun(bytes: Uint8Array, start: number, kinds: number, max: number): number {
  const end = Math.min(bytes.length, start + max);
  let at = start;
  while (at < end && ((KINDS[bytes[at] as number] as number) & kinds) !== 0) at++;
  return at;
}

/** Returns the index of the quote that ends a text, or an index after the bytes if none does. */
function endOfText(bytes: Uint8Array, start: number): number {
  let at = start;
  // A search takes as long as about 16 bytes, so there are few searches in a text with many escaped quotes.
  for (let distance = NEAR; ; distance *= 2) {
    const near = Math.min(bytes.length, at + distance);
    while (at < near) {
      if (bytes[at] === QUOTE) return at;
      at += bytes[at] === BACKSLASH ? 2 : 1;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1) return bytes.length;
    let backslashes = 0;
    while (quote - backslashes > at && bytes[quote - backslashes - 1] === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return quote;
    at = quote + 1;
  }
}

/**
 * Finds the end of a list or of an object, and counts its values.
 *
 * @param max the maximum number of bytes outside of texts
 * @returns undefined if it does not end, or exceeds a maximum
 */
function endOfNested(bytes: Uint8Array, start: number, max: number) {
  const closing = new Uint8Array(MAX_DEPTH);
  let depth = 0;
  let commas = 0;
  let kindsInside = 0;
  let outsideTexts = 0;
  for (let at = start; at < bytes.length && outsideTexts < max; at++, outsideTexts++) {
    const code = bytes[at] as number;
    const kind = KINDS[code] as number;
    if (depth === 1) {
      if (code === COMMA) commas++;
      if (kind !== CLOSING) kindsInside |= kind;
    }
    if (kind < OPENING) continue;
    if (kind === QUOTING) at = endOfText(bytes, at + 1);
    else if (kind === OPENING) {
      if (depth === MAX_DEPTH) return undefined;
      closing[depth++] = code + 2;
    } else {
      if (kind !== CLOSING || closing[--depth] !== code) return undefined;
      if (depth > 0) continue;
      const items = (kindsInside & ~SPACE) === 0 ? 0 : commas + 1;
      const hasOnlyNumbers = (kindsInside & (OF_WORD | OPENING | QUOTING)) === 0;
      return { end: at + 1, items, hasOnlyNumbers, outsideTexts };
    }
  }
  return undefined;
}

/**
 * Gets the next piece of a body's text, and the number of bytes that were read for it.
 *
 * @returns whether to read on
 */
type OnText = (text: string, bytes: number) => boolean;

/**
 * Reads a body to its end, or until `onText` returns false. A body that breaks off ends at that
 * point. Bytes that are not UTF-8 become U+FFFD, and a byte order mark at the start is omitted.
 * A piece contains only whole characters.
 */
export async function readPieces(body: ReadableStream<Uint8Array>, onText: OnText): Promise<void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    let goesOn = true;
    while (goesOn) {
      const { done, value } = await reader.read();
      goesOn = onText(decoder.decode(value, { stream: !done }), value?.byteLength ?? 0) && !done;
    }
  } catch {
    // The client or the origin has ended the connection.
  }
  ignoreRest(reader);
}

/**
 * Cancels a body. Otherwise the runtime would keep the unread rest in memory. The function does not
 * wait, because the cancellation of a cloned body ends only when the other clone ends.
 */
export function ignoreRest(body: Pick<ReadableStream, "cancel">): void {
  body.cancel().catch(() => {});
}
