/**
 * The maximum length of an event with all its lines, in UTF-16 code units. Longer events are skipped, because the
 * memory of an isolate is limited. Only the events of generated images and of very long answers can be nearly as long.
 */
export const MAX_EVENT_LENGTH = 2 * 1024 * 1024;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Parses a stream of server-sent events, whose text arrives in pieces of any length. The time is linear in the length
 * of the stream, even if every piece is a single character.
 */
export class EventStreamParser {
  readonly #onData: (data: string) => void;
  /** The current line so far. */
  #line = "";
  /** The data of the current event so far; undefined if no line had data. */
  #data: string | undefined;
  /** The length of the current event so far, without line ends. */
  #length = 0;
  #isAfterReturn = false;

  /** @param onData gets the data of each event, whose lines are joined with line feeds */
  constructor(onData: (data: string) => void) {
    this.#onData = onData;
  }

  /** @param text the next piece of the stream, decoded from UTF-8 and without a byte order mark */
  push(text: string): void {
    let start = 0;
    for (let end = 0; end < text.length; end++) {
      const code = text.charCodeAt(end);
      const isPair = code === LINE_FEED && this.#isAfterReturn;
      this.#isAfterReturn = code === CARRIAGE_RETURN;
      if (code !== LINE_FEED && code !== CARRIAGE_RETURN) continue;
      if (end > start) this.#add(text.slice(start, end));
      if (!isPair) this.#endLine();
      start = end + 1;
    }
    if (start < text.length) this.#add(start === 0 ? text : text.slice(start));
  }

  #add(piece: string): void {
    this.#length += piece.length;
    if (this.#length <= MAX_EVENT_LENGTH) this.#line += piece;
  }

  #endLine(): void {
    const line = this.#line;
    this.#line = "";
    if (line === "") this.#endEvent();
    else if (line === "data" || line.startsWith("data:")) {
      const value = line.slice(line[5] === " " ? 6 : 5);
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    }
  }

  #endEvent(): void {
    const data = this.#length <= MAX_EVENT_LENGTH ? this.#data : undefined;
    this.#data = undefined;
    this.#length = 0;
    if (data !== undefined) this.#onData(data);
  }

  /** Ends the current event. Must also be called at the end of the stream. */
  end(): void {
    this.#endLine();
    this.#endEvent();
  }
}

/** The maximum depth of nested lists and objects. */
export const MAX_DEPTH = 100;
/**
 * The maximum number of characters outside of texts and lists of tokens, such as brackets, digits and white space. A
 * text in quotes counts as one. JSON.parse needs up to a quarter of a second for a megabyte of names, while all other
 * requests of the isolate wait. A body of messages has only a few names for each text.
 */
export const MAX_OUTSIDE_TEXTS = 64 * 1024;
/**
 * The maximum number of different names in all objects together. Different names take JSON.parse the most time:
 * 16,000 names take 50 ms. Messages and the schemas of a hundred tools have fewer than a thousand.
 */
export const MAX_NAMES = 2048;
/** The maximum length of folded names, far above the longest name that Weir reads. */
const MAX_FOLDED_LENGTH = 64;

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Parses a JSON object of bounded size.
 *
 * @returns undefined if the text is not a JSON object, or if it exceeds {@link MAX_DEPTH}, {@link MAX_OUTSIDE_TEXTS}
 * or {@link MAX_NAMES}. Also undefined if an object in the text has two equal names, because servers differ in which
 * of the two fields they use
 */
export function parseObject(json: string): Readonly<Record<string, unknown>> | undefined {
  const names = countNames(json);
  const value = names === undefined ? undefined : tryParse(json);
  return isObject(value) && !Array.isArray(value) && countKeys(value) === names ? value : undefined;
}

/** The inside of a list of whole numbers in JSON, with its end. */
const NUMBERS = /[\d, \t\r\n]*\d[ \t\r\n]*\]/y;
/** A number with more digits than any token has counts as several tokens. */
const NUMBER = /\d{1,7}/g;

/**
 * Removes the numbers from all lists that contain only whole numbers. In requests to language models, each of these
 * numbers is a token. Only digits, commas and white space are removed, so no name or text gets lost.
 *
 * @returns the remaining JSON, and how many numbers were removed
 */
export function withoutTokens(json: string): { readonly rest: string; readonly tokens: number } {
  let rest = "";
  let tokens = 0;
  let start = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfText(json, at + 1);
    if (code !== OPEN_LIST) continue;
    NUMBERS.lastIndex = at + 1;
    const [numbers] = NUMBERS.exec(json) ?? [];
    if (numbers === undefined) continue;
    tokens += numbers.match(NUMBER)?.length ?? 0;
    rest += json.slice(start, at + 1);
    start = at + numbers.length;
    at = start;
  }
  return { rest: rest + json.slice(start), tokens };
}

/**
 * Returns the fields of an object by their folded names. The names are folded as by servers in Go, C# or Java: these
 * ignore case, and treat `ſ` as `s`, the Kelvin sign as `k`, and `ı` and `İ` as `i`.
 *
 * @returns undefined if two folded names are equal
 */
export function foldNames(
  object: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, unknown> | undefined {
  const entries = Object.entries(object);
  const fields = new Map(entries.map(([name, value]) => [foldName(name), value]));
  return fields.size === entries.length ? fields : undefined;
}

function foldName(name: string): string {
  if (name.length > MAX_FOLDED_LENGTH) return name;
  return name.replace(/[ıİ]/g, "i").toLowerCase().replaceAll("ſ", "s");
}

/**
 * Counts the names in a text that may be JSON, by their colons.
 *
 * @returns undefined if the text exceeds {@link MAX_DEPTH}, {@link MAX_OUTSIDE_TEXTS} or {@link MAX_NAMES}
 */
function countNames(json: string): number | undefined {
  const different = new Set<string>();
  let names = 0;
  let depth = 0;
  let outsideTexts = 0;
  let [textStart, textEnd] = [0, 0];
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      textStart = at + 1;
      at = endOfText(json, textStart);
      textEnd = at;
    } else if (code === COLON) {
      names++;
      different.add(json.slice(textStart, textEnd));
      // A second colon after the same text gets an empty name, so that a long text is not hashed for each colon.
      textStart = textEnd;
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) depth++;
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
    outsideTexts++;
    const isTooMany = outsideTexts > MAX_OUTSIDE_TEXTS || different.size > MAX_NAMES;
    if (depth > MAX_DEPTH || isTooMany) return undefined;
  }
  return names;
}

/** Returns the index of the quote that ends a text; the length of `json` if no quote ends it. */
function endOfText(json: string, start: number): number {
  let at = start;
  while (at < json.length && json.charCodeAt(at) !== QUOTE) {
    at += json.charCodeAt(at) === BACKSLASH ? 2 : 1;
  }
  return at;
}

function countKeys(value: unknown): number {
  if (!isObject(value)) return 0;
  const values = Object.values(value);
  const own = Array.isArray(value) ? 0 : values.length;
  return values.reduce<number>((sum, each) => sum + countKeys(each), own);
}

/** @returns undefined if the text is not JSON */
export function tryParse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Whether a value of JSON is an object or a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/**
 * Reads a body to its end, or until `onText` returns false. A body that breaks off ends at that point. A byte order
 * mark at the start is omitted. A piece contains only whole characters.
 *
 * @param onText gets the next piece, and the number of bytes that were read for it
 * @param decoder by default, bytes that are not UTF-8 become U+FFFD; a fatal decoder ends the body there
 * @returns whether the body was read to its end
 */
export async function readPieces(
  body: ReadableStream<Uint8Array>,
  onText: (text: string, bytes: number) => boolean,
  decoder = new TextDecoder(),
): Promise<boolean> {
  const reader = body.getReader();
  let isWhole = false;
  try {
    let goesOn = true;
    while (goesOn) {
      const { done, value } = await reader.read();
      goesOn = onText(decoder.decode(value, { stream: !done }), value?.byteLength ?? 0) && !done;
      isWhole = done;
    }
  } catch {
    // The client or the origin has ended the connection, or the body is not UTF-8.
  }
  ignoreRest(reader);
  return isWhole;
}

/**
 * Cancels a body, because the runtime would otherwise keep the unread rest in memory. Does not wait, because the
 * cancellation of a cloned body ends only when the other clone ends.
 */
export function ignoreRest(body: Pick<ReadableStream, "cancel">): void {
  body.cancel().catch(() => {});
}
