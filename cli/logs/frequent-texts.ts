import { type LogRequest, ownText } from "./log-request.ts";

/** How often a text was seen. */
interface TextCount {
  readonly text: string;
  readonly count: number;
}

/** The maximum length of a text, in characters. */
const MAX_LENGTH = 200;
const MAX_TEXTS = 8;

interface Entry {
  text: string;
  count: number;
  /** By how much `count` may be too high. */
  error: number;
}

/**
 * The most frequent of many texts, with a bounded number of entries: the algorithm Space-Saving (Metwally, Agrawal
 * and El Abbadi, 2005). A new text replaces the rarest one and takes over its count, as the error.
 *
 * A text with a count of n is replaced only by every n-th unknown text. This keeps texts that are really frequent,
 * and saves the time of copying a text for each request of a client that never repeats one (Random Admission
 * Policy: Ben-Basat, Einziger, Friedman and Kassner, 2017).
 */
export class FrequentTexts {
  readonly #entries: Entry[] = [];
  /** Unknown texts since the last replacement. */
  #unknown = 0;

  /** Counts a text. Its end is cut off if it has more than 200 characters. */
  add(text: string): void {
    const entries = this.#entries;
    const bounded = text.length > MAX_LENGTH ? text.slice(0, MAX_LENGTH) : text;
    let rarest: Entry | undefined;
    for (const entry of entries) {
      if (entry.text === bounded) {
        entry.count++;
        return;
      }
      if (rarest === undefined || entry.count < rarest.count) rarest = entry;
    }
    if (rarest === undefined || entries.length < MAX_TEXTS) {
      entries.push({ text: ownText(bounded), count: 1, error: 0 });
      return;
    }
    this.#unknown++;
    if (this.#unknown < rarest.count) return;
    this.#unknown = 0;
    rarest.text = ownText(bounded);
    rarest.error = rarest.count++;
  }

  /** Returns the most frequent texts, each with the number of times that it was seen at least. */
  top(count: number): TextCount[] {
    return this.#entries
      .map((entry) => ({ text: entry.text, count: entry.count - entry.error }))
      .sort((one, other) => other.count - one.count || compare(one.text, other.text))
      .slice(0, count);
  }
}

/** Orders texts in the same way in every locale. */
export function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** The maximum length of a method, in characters. */
const MAX_METHOD = 20;
const [QUESTION_MARK, NUMBER_SIGN, SEMICOLON] = [0x3f, 0x23, 0x3b];

/** The texts of a request that reports show. The object is reused: several rankings count the same request. */
export class RequestTexts {
  #request: LogRequest | undefined;
  /** Empty if the request has none. */
  userAgent = "";
  /** The method and the path, without a query, which may contain credentials. */
  path = "";

  /** Reads the texts of a request. */
  read(request: LogRequest): this {
    if (this.#request === request) return this;
    this.#request = request;
    this.userAgent = request.userAgent ?? "";
    this.path = `${request.method.slice(0, MAX_METHOD)} ${pathOf(request.target)}`;
    return this;
  }
}

/** Returns the path of a target, up to its query, its parameters or its fragment. */
function pathOf(target: string): string {
  for (let end = 0; end < target.length; end++) {
    const unit = target.charCodeAt(end);
    if (unit === QUESTION_MARK || unit === NUMBER_SIGN || unit === SEMICOLON) {
      return target.slice(0, end);
    }
  }
  return target;
}
