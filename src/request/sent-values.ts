import type { KeyPart } from "../config/key.ts";
import type { Rule } from "../config/rule.ts";
import { foldHeaderName, type ReadonlyHeaders } from "./headers.ts";
import { createNameTest, NameIndex } from "./lenient-name.ts";
import { decodeEscapes, foldText, isAscii, trimBlanks } from "./text-folding.ts";
import {
  decodeLeniently,
  encodedCookieValue,
  hasCredential,
  hasUnclearCommas,
  headerValue,
  MAX_ENCODED_LENGTH,
  queryValue,
  readCredential,
} from "./values.ts";

/**
 * A header or a query parameter of a request, with all texts that origins may read from it.
 */
export interface SentValue {
  /** Undefined if some origins may read the value as absent, for example because it is empty. */
  readonly isPresent: boolean | undefined;
  /** Undefined if the value is absent, or if the texts that origins may read are not known. */
  readonly text?: SentText;
}

const ABSENT: SentValue = { isPresent: false };
const PRESENT: SentValue = { isPresent: true };
const UNCLEAR: SentValue = { isPresent: undefined };

/** The maximum length of a text to fold, in characters, unless it is ASCII. Folding takes long. */
const MAX_FOLDED_LENGTH = 2048;
/** The characters that lenient servers ignore: white space, quotes, characters without a width. */
const IGNORED = String.raw`\s+"'${"`"}\ufffd\p{Cc}\p{Default_Ignorable_Code_Point}`;
const ALL_IGNORED = new RegExp(`[${IGNORED}]+`, "gu");
const NOT_IGNORED = new RegExp(`[^${IGNORED}]`, "u");

/** Returns a text without the differences that a lenient server may ignore. */
export function foldValue(text: string): string {
  return foldText(text, false).replace(ALL_IGNORED, "");
}

/** The texts that origins may read from one value. Lenient texts are computed only if needed. */
export class SentText {
  /**
   * The texts that origins may read if they follow the standards. The list is empty if the
   * standards do not determine the text. Only a plus sign in a query has two meanings, so the list
   * has both texts.
   */
  readonly exact: readonly string[];
  readonly #lenient: string;
  readonly #isCredential: boolean;
  #folded: readonly string[] | undefined;
  #credential: string | undefined;

  constructor(exact: readonly string[], lenient: string, isCredential = false) {
    this.exact = exact;
    this.#lenient = lenient;
    this.#isCredential = isCredential;
  }

  /** Whether an origin may read a character that is not ASCII, or a byte that is not UTF-8. */
  get isWide(): boolean {
    return !isAscii(this.#lenient);
  }

  /** The folded texts that lenient origins may read. Some of them cut a text at the first NUL. */
  get folded(): readonly string[] {
    this.#folded ??= [...new Set([this.#lenient, beforeNul(trimBlanks(this.#lenient))])].map(
      foldValue,
    );
    return this.#folded;
  }

  /** The folded text after the scheme; an empty text if the value is not a credential. */
  get credential(): string {
    this.#credential ??= this.#isCredential ? foldValue(readCredential(this.#lenient) ?? "") : "";
    return this.#credential;
  }
}

/**
 * Reads a header. If a header was sent twice, the runtime has joined both values with a comma.
 */
function sentHeader(name: string, value: string): SentValue {
  const isPresent = value.split(",").every((part) => NOT_IGNORED.test(part)) || undefined;
  if (hasUnclearCommas(name, value) || isTooLong(value)) return { isPresent };
  const isCredential = hasCredential(name);
  if (isCredential && readCredential(value) === undefined) return { isPresent };
  return { isPresent, text: new SentText([value], value, isCredential) };
}

/**
 * Reads a query parameter that was sent once.
 *
 * @param encoded the value as the client has sent it
 */
function sentParameter(encoded: string): SentValue {
  if (encoded.length > MAX_ENCODED_LENGTH) return UNCLEAR;
  const lenient = decodeLeniently(encoded);
  const isPresent = isClearlyPresent(lenient);
  // Some servers decode a value a second time.
  if (ESCAPE.test(lenient) || isTooLong(lenient)) return { isPresent };
  return { isPresent, text: new SentText(exactTexts(encoded), lenient) };
}

/** Whether no origin reads an encoded value as empty; undefined if some origin may do so. */
function isClearlyPresent(lenient: string): true | undefined {
  return NOT_IGNORED.test(beforeNul(lenient).replace(ESCAPES, "")) || undefined;
}

/**
 * Returns the texts that the standards allow. Some origins read a plus sign as a space, and others
 * keep it.
 */
function exactTexts(encoded: string): string[] {
  // No standard defines escapes such as `%u0071`, or a percent sign without two digits.
  if (/%(?![\da-f]{2})/i.test(encoded)) return [];
  const texts = encoded.includes("+") ? [encoded, encoded.replaceAll("+", " ")] : [encoded];
  return texts.map(decodeEscapes);
}

function isTooLong(text: string): boolean {
  return text.length > MAX_FOLDED_LENGTH && !isAscii(text);
}

function beforeNul(text: string): string {
  const end = text.indexOf("\0");
  return end === -1 ? text : text.slice(0, end);
}

const ESCAPE = /%u?[\da-f]{2}/i;
const ESCAPES = /%(?:u[\da-f]{4}|[\da-f]{2})/gi;

// These functions find names and texts in queries and cookies. They create no text, because thousands
// of pairs would create thousands of texts. Generators would take twice as long.

const AMPERSAND = 0x26;
const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const SPACE = 0x20;
const EQUALS = 0x3d;

/** The positions of a name and its encoded text in a query or in cookies. */
interface Pair {
  readonly start: number;
  /** The position of the first `=`; the end of the pair if it has none. */
  readonly equals: number;
  readonly end: number;
  /** The separator before the pair, as a UTF-16 code unit; `NaN` at the start. */
  readonly before: number;
  /** The separator after the pair; `NaN` at the end. */
  readonly after: number;
}

/**
 * Calls a function for each pair of a name and a text. Pairs are separated by semicolons or by the
 * given separator.
 */
function forEachPair(text: string, separator: number, visit: (pair: Pair) => void): void {
  let start = 0;
  let equals = -1;
  let before = Number.NaN;
  for (let end = 0; end <= text.length; end++) {
    const after = text.charCodeAt(end);
    if (after === EQUALS) {
      if (equals === -1) equals = end;
    } else if (after === SEMICOLON || after === separator || end === text.length) {
      if (end > start) visit({ start, equals: equals === -1 ? end : equals, end, before, after });
      start = end + 1;
      equals = -1;
      before = after;
    }
  }
}

/**
 * Calls a function for each name that follows white space inside a pair. Python's http.cookies starts
 * a new pair at such a name.
 */
function forEachNameAfterSpace(text: string, visit: (start: number, end: number) => void): void {
  let isInPair = false;
  let isAfterSpace = false;
  /** The start and the end of the last word; -1 if there is none or if it is not complete. */
  let start = -1;
  let end = -1;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === SEMICOLON || code === COMMA) {
      isInPair = false;
      isAfterSpace = false;
      start = -1;
    } else if (code <= SPACE) {
      if (end === -1) end = index;
      isAfterSpace = isInPair;
    } else if (code === EQUALS) {
      if (start !== -1) visit(start, end === -1 ? index : end);
      isInPair = true;
      isAfterSpace = false;
      start = -1;
      end = -1;
    } else {
      if (isAfterSpace) start = index;
      else if (end !== -1) start = -1;
      end = -1;
      isInPair = true;
      isAfterSpace = false;
    }
  }
}

/**
 * The maximum number of values of one parameter that are decoded. If a request repeats a parameter more
 * often, it is unclear whether the parameter is present. Decoding thousands of values would take long.
 */
const MAX_DECODED_VALUES = 16;

/** The names that a configuration reads. */
export interface SentNames {
  /** The other spellings of each name of a header in a key. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly cookies: NameIndex;
  readonly parameters: NameIndex;
}

/** Collects the names in these rules' keys, tiers and conditions. */
export function sentNamesOf(rules: readonly Rule[]): SentNames {
  const parts = rules.flatMap(({ key, tiers }) => [...key, ...(tiers?.by ?? [])].flat());
  const namesOf = (kind: KeyPart["kind"]) =>
    parts.flatMap((part) => (part.kind === kind && "name" in part ? [part.name] : []));
  const conditions = rules.flatMap(({ match }) => [
    ...(match.query ?? []),
    ...(match.except?.query ?? []),
  ]);
  const parameters = [...namesOf("query"), ...conditions.map(({ name }) => name)];
  return {
    headers: new Map(namesOf("header").map((name) => [name, spellingsWithUnderscores(name)])),
    cookies: new NameIndex(namesOf("cookie")),
    parameters: new NameIndex(parameters),
  };
}

/**
 * Returns the names with underscores in place of some hyphens. Servers that pass headers as
 * variables, as CGI does, do not distinguish these names. Of a name with more than two hyphens, only
 * the name without hyphens is returned, because each name takes a look-up in each request.
 */
function spellingsWithUnderscores(name: string): string[] {
  const [first = "", ...rest] = name.split("-");
  if (rest.length > 2) return [name.replaceAll("-", "_")];
  return rest
    .reduce(
      (names, word) => names.flatMap((each) => [`${each}-${word}`, `${each}_${word}`]),
      [first],
    )
    .filter((each) => each !== name);
}

/** The parts of a request that have values by names. */
interface ValueSource {
  readonly headers: ReadonlyHeaders;
  readonly search: string;
  readonly hasHiddenQuery: boolean;
}

/** The cookies or the parameters of one request that servers may read as one name. */
interface SentPairs {
  /** The encoded values of the first pairs with exactly this name. */
  readonly values: string[];
  /** The number of pairs with this name in any spelling. */
  count: number;
  /** Whether a pair has another name that some servers read as this name. */
  hasOtherSpelling: boolean;
  /** The encoded value of the first pair in any spelling. */
  readonly first: string;
  /** Whether servers disagree about where the first pair ends, or whether it has this name. */
  isUnclear: boolean;
}

/**
 * The headers, the cookies and the query parameters of one request that conditions and keys
 * use. Each value is read at most once, and the query and the cookies are split once, even if many
 * rules read them.
 */
export class SentValues {
  readonly #source: ValueSource;
  readonly #names: SentNames | undefined;
  #spellings: Map<string, number> | undefined;
  #query: ReadonlyMap<string, SentPairs> | undefined;
  #cookies: ReadonlyMap<string, SentPairs> | undefined;
  #search = "";
  #hasAnyName = false;
  readonly #known = new Map<string, unknown>();

  /**
   * @param names the names that the configuration reads. Each other name takes a pass over the query
   * or the cookies
   */
  constructor(source: ValueSource, names?: SentNames) {
    this.#source = source;
    this.#names = names;
  }

  /**
   * Returns the texts that origins may read from a header, for conditions.
   *
   * @param name the name of the header, in lower case
   */
  header(name: string): SentValue {
    return this.#once(`header ${name}`, () => this.#readHeader(name));
  }

  /** Returns the texts that origins may read from a query parameter, for conditions. */
  parameter(name: string): SentValue {
    return this.#once(`parameter ${name}`, () => this.#readParameter(name));
  }

  /**
   * Returns the value of a header in one spelling, for keys.
   *
   * @param name the name of the header, in lower case
   * @returns undefined if the header is missing, or if origins may read different values
   */
  headerKey(name: string): string | undefined {
    const { headers } = this.#source;
    const value = headers.get(name);
    if (value) {
      const others = this.#names?.headers.get(name) ?? spellingsWithUnderscores(name);
      if (others.some((other) => headers.has(other))) return undefined;
    }
    // Most headers have a short value, which is read faster than it is looked up.
    if (!value || value.length <= MAX_REREAD) return value ? headerValue(name, value) : undefined;
    return this.#once(`header key ${name}`, () => headerValue(name, value));
  }

  /** Returns the value of a query parameter, like {@link headerKey}. */
  parameterKey(name: string): string | undefined {
    return this.#once(`parameter key ${name}`, () => {
      const sent = this.#parametersNamed(name);
      return this.#hasAnyName ? undefined : sent && readSingle(sent, queryValue);
    });
  }

  /** Returns the value of a cookie, like {@link headerKey}. */
  cookieKey(name: string): string | undefined {
    return this.#once(`cookie key ${name}`, () => {
      const sent = this.#cookiesNamed(name);
      return sent && readSingle(sent, encodedCookieValue);
    });
  }

  #once<Value>(id: string, read: () => Value): Value {
    if (this.#known.has(id)) return this.#known.get(id) as Value;
    const value = read();
    this.#known.set(id, value);
    return value;
  }

  #readHeader(name: string): SentValue {
    const value = this.#source.headers.get(name);
    // Servers may confuse a name with other names only if it contains a separator.
    if (/[^a-z\d]/.test(name)) {
      this.#spellings ??= countSpellings(this.#source.headers);
      const count = this.#spellings.get(foldHeaderName(name)) ?? 0;
      if (count > (value === null ? 0 : 1)) return UNCLEAR;
    }
    return value === null ? ABSENT : sentHeader(name, value);
  }

  #readParameter(name: string): SentValue {
    const sent = this.#parametersNamed(name);
    if (this.#hasAnyName) return UNCLEAR;
    if (!sent) return ABSENT;
    // Most servers read `;` as a part of a value, and others read it as a separator.
    if (sent.hasOtherSpelling || this.#search.includes(";")) return UNCLEAR;
    const [single = ""] = sent.values;
    if (sent.count === 1) return sentParameter(single);
    if (sent.count > MAX_DECODED_VALUES) return UNCLEAR;
    return sent.values.every((value) => isClearlyPresent(decodeLeniently(value)))
      ? PRESENT
      : UNCLEAR;
  }

  #parametersNamed(name: string): SentPairs | undefined {
    const index = this.#names?.parameters;
    if (!index?.has(name)) return this.#readQuery(new NameIndex([name])).get(name);
    this.#query ??= this.#readQuery(index);
    return this.#query.get(name);
  }

  #cookiesNamed(name: string): SentPairs | undefined {
    const index = this.#names?.cookies;
    if (!index?.has(name)) return this.#readCookies(new NameIndex([name])).get(name);
    this.#cookies ??= this.#readCookies(index);
    return this.#cookies.get(name);
  }

  #readQuery(index: NameIndex): ReadonlyMap<string, SentPairs> {
    this.#search = this.#source.search;
    this.#hasAnyName = this.#source.hasHiddenQuery;
    const query = new Map<string, SentPairs>();
    forEachParameter(this.#search, (sent, value, after) => {
      const names = index.find(sent);
      if (names === index.all) this.#hasAnyName = true;
      // Only some servers end a value at `;`.
      else for (const name of names) addPair(query, name, sent, value, after === SEMICOLON);
    });
    return query;
  }

  #readCookies(index: NameIndex): ReadonlyMap<string, SentPairs> {
    const cookies = new Map<string, SentPairs>();
    const text = this.#source.headers.get("cookie");
    if (!text) return cookies;
    /** Most cookies have other names, and the first letter is enough to see this. */
    const namesIn = (start: number, end: number): readonly string[] => {
      const first = text.charCodeAt(start) === 0x20 ? start + 1 : start;
      if (!index.mayBegin(text.charCodeAt(first))) return [];
      const names = index.find(text.slice(first, end));
      // No server decodes the name of a cookie twice.
      return names === index.all ? [] : names;
    };
    forEachPair(text, COMMA, ({ start, equals, end, before, after }) => {
      if (equals === end) return;
      // The runtime joins several headers by commas. Only some servers split cookies at commas.
      const isUnclear = before === COMMA || after === COMMA;
      for (const name of namesIn(start, equals)) {
        addPair(cookies, name, text.slice(start, equals), text.slice(equals + 1, end), isUnclear);
      }
    });
    forEachNameAfterSpace(text, (start, end) => {
      for (const name of namesIn(start, end)) addPair(cookies, name, name, "", true);
    });
    return cookies;
  }
}

/**
 * The maximum length of a header that is read again for each rule, in characters. Reading it
 * takes less time than looking it up.
 */
const MAX_REREAD = 64;

/**
 * Calls a function for each name and encoded value of a query. A parameter without `=` has an empty
 * value. Weir splits parameters at `;` too, because some servers still do this.
 *
 * @param search a URL's query, with its question mark
 */
function forEachParameter(
  search: string,
  visit: (name: string, value: string, after: number) => void,
): void {
  const text = search.slice(1);
  forEachPair(text, AMPERSAND, ({ start, equals, end, after }) =>
    visit(text.slice(start, equals), text.slice(equals + 1, end), after),
  );
}

function addPair(
  pairs: Map<string, SentPairs>,
  name: string,
  sent: string,
  value: string,
  isUnclear: boolean,
): void {
  const known = pairs.get(name);
  const isExact = sent === name;
  if (known) {
    known.count++;
    known.isUnclear ||= isUnclear;
    if (!isExact) known.hasOtherSpelling = true;
    else if (known.values.length < MAX_DECODED_VALUES) known.values.push(value);
    return;
  }
  pairs.set(name, {
    values: isExact ? [value] : [],
    count: 1,
    hasOtherSpelling: !isExact,
    first: value,
    // The index finds `name[key]` too, which no server reads as a text.
    isUnclear: isUnclear || !(isExact || createNameTest(name)(sent)),
  });
}

/**
 * Returns the value of a name that was sent once. If it was sent twice, servers read the first value
 * or the last one.
 */
function readSingle(
  { count, isUnclear, first }: SentPairs,
  read: (encoded: string) => string | undefined,
): string | undefined {
  return count > 1 || isUnclear ? undefined : read(first);
}

/** Counts the headers whose names servers may take for the same name. */
function countSpellings(headers: ReadonlyHeaders): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of new Set(headers.keys())) {
    const spelling = foldHeaderName(name);
    counts.set(spelling, (counts.get(spelling) ?? 0) + 1);
  }
  return counts;
}
