import type { KeyPart } from "../config/key.ts";
import type { Rule } from "../config/rule.ts";
import { foldHeaderName, type ReadonlyHeaders } from "./headers.ts";
import {
  decodeEscapes,
  decodeOverlong,
  decodeUnicodeEscapes,
  foldText,
  isAscii,
  isBlank,
  removeInvalidUtf8,
  trimBlanks,
} from "./text-folding.ts";
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

/** A header or a query parameter, with all texts that origins may read from it. */
export interface SentValue {
  /** Undefined if some origins may read the value as absent, for example as empty. */
  readonly isPresent: boolean | undefined;
  /** Undefined if the value is absent, or if the texts that origins may read are unknown. */
  readonly text?: SentText;
}

/** In characters. Reading a header of at most this length again for each rule is faster than a look-up. */
const MAX_REREAD = 64;

const ABSENT: SentValue = { isPresent: false };
const PRESENT: SentValue = { isPresent: true };
const UNCLEAR: SentValue = { isPresent: undefined };

/** The maximum length of a text to fold, in characters, unless the text is ASCII. Folding takes long. */
const MAX_FOLDED_LENGTH = 2048;
/** The characters that lenient servers ignore: white space, quotes, and characters without a width. */
const IGNORED = String.raw`\s+"'${"`"}\ufffd\p{Cc}\p{Default_Ignorable_Code_Point}`;
const ALL_IGNORED = new RegExp(`[${IGNORED}]+`, "gu");
const NOT_IGNORED = new RegExp(`[^${IGNORED}]`, "u");

/** Removes the differences that a lenient server may ignore. */
export function foldValue(text: string): string {
  return foldText(text, false).replace(ALL_IGNORED, "");
}

/** The texts that origins may read from one value. */
export class SentText {
  /**
   * The texts that origins may read if they follow the standards. A plus sign in a query has two meanings, so the
   * list then has two texts. If the standards do not determine the text, the list is empty.
   */
  readonly exact: readonly string[];
  /** The folded text after the scheme; empty if the value is not a credential. */
  readonly credential: string;
  readonly #lenient: string;
  #folded: readonly string[] | undefined;

  constructor(exact: readonly string[], lenient: string, credential = "") {
    this.exact = exact;
    this.#lenient = lenient;
    this.credential = credential;
  }

  /** Whether an origin may read a character that is not ASCII, or a byte that is not UTF-8. */
  get isWide(): boolean {
    return !isAscii(this.#lenient);
  }

  /** The folded texts that lenient origins may read. Some lenient origins cut a text at the first NUL. */
  get folded(): readonly string[] {
    this.#folded ??= [...new Set([this.#lenient, beforeNul(trimBlanks(this.#lenient))])].map(
      foldValue,
    );
    return this.#folded;
  }
}

/** Reads a header. If a header was sent twice, the runtime joins the values with a comma. */
function sentHeader(name: string, value: string): SentValue {
  const isPresent = value.split(",").every((part) => NOT_IGNORED.test(part)) || undefined;
  if (hasUnclearCommas(name, value) || isTooLong(value)) return { isPresent };
  if (!hasCredential(name)) return { isPresent, text: new SentText([value], value) };
  const credential = readCredential(value);
  if (credential === undefined) return { isPresent };
  return { isPresent, text: new SentText([value], value, foldValue(credential)) };
}

/** Reads a query parameter that was sent once, from its encoded text. */
function sentParameter(encoded: string): SentValue {
  if (encoded.length > MAX_ENCODED_LENGTH) return UNCLEAR;
  const lenient = decodeLeniently(encoded);
  const isPresent = isClearlyPresent(lenient);
  // Some servers decode a value a second time.
  if (ESCAPE.test(lenient) || isTooLong(lenient)) return { isPresent };
  return { isPresent, text: new SentText(exactTexts(encoded), lenient) };
}

/** Whether no origin reads an encoded value as empty; undefined if some origins may. */
function isClearlyPresent(lenient: string): true | undefined {
  return NOT_IGNORED.test(beforeNul(lenient).replace(ESCAPES, "")) || undefined;
}

/** Returns the texts that the standards allow for an encoded value. */
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

// The next functions find names and texts in queries and cookies by their positions, because thousands of pairs would
// create thousands of texts. Generators would take twice as long.

const AMPERSAND = 0x26;
const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const SPACE = 0x20;
const EQUALS = 0x3d;

/** The positions of a name and its encoded text in a query or in cookies. */
interface Pair {
  readonly start: number;
  /** The position of the first `=`, or of the end of the pair if it has no `=`. */
  readonly equals: number;
  readonly end: number;
  /** The separator before the pair, as a UTF-16 code unit; `NaN` at the start. */
  readonly before: number;
  /** The separator after the pair; `NaN` at the end. */
  readonly after: number;
}

/** Visits the pairs, which are separated by semicolons or by the given separator. */
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

/** Matches white space inside a pair and the name after it, where Python's http.cookies starts a new pair. */
const NAME_AFTER_SPACE = /[^\0-\x20;,][\0-\x20]+([^\0-\x20;,=]+)(?=[\0-\x20]*=)/g;

/**
 * The maximum number of values of one parameter that are decoded, because decoding thousands of values would take
 * long. If a request repeats a parameter more often, its presence is unknown.
 */
const MAX_DECODED_VALUES = 16;
/**
 * The maximum total length of the names to decode in a query or in the cookies: names with escapes or other special
 * characters. Above it, all parameters or cookies of the request are unclear.
 */
const MAX_DECODED_NAMES = 4096;

const OPEN = 0x5b;
const CLOSE = 0x5d;
const NONE: readonly string[] = [];
/** Matches names whose only possible difference is case. */
const PLAIN = /^[\w-]+$/;
/** Matches the characters that PHP replaces by an underscore in a name: the dot, brackets and blanks. */
const BECOMES_UNDERSCORE = /[\0-\x20\x7f-\xa0.[\]\s\ufffd\p{Default_Ignorable_Code_Point}]/gu;

function foldName(name: string): string {
  return foldText(name, false).replace(BECOMES_UNDERSCORE, "_");
}

/**
 * Returns the folded forms in which a name that a rule reads may be sent: without brackets around it or after it, and
 * without the last bracket of `user[id]`. {@link withoutSuffix} removes this bracket from sent names too.
 */
function foldedRuleNames(name: string): ReadonlySet<string> {
  const bare = name.replace(/(\[\d*\])+$/, "").replace(/^\[(.+)\]$/, "$1");
  return new Set([foldName(bare), foldName(withoutSuffix(bare) || bare)]);
}

/**
 * Decodes a name once: plus signs and escapes, including `%u0071` and overlong ASCII characters. Bytes that are not
 * UTF-8 become spaces, because some servers remove them.
 */
function decodeName(sent: string): string {
  const escapes = decodeOverlong(decodeUnicodeEscapes(sent.replaceAll("+", " ")));
  return removeInvalidUtf8(escapes, " ");
}

/**
 * Cuts a decoded name at a NUL, and removes blanks and brackets from its start, because Rack 2 reads `]name` as
 * `name`.
 */
function withoutPrefix(name: string): string {
  const text = beforeNul(name);
  let start = 0;
  while (isIgnoredAtEnds(text.charCodeAt(start))) start++;
  return text.slice(start);
}

/** Removes what lenient servers ignore at the end of a name: blanks, and brackets that are empty or have digits. */
function withoutSuffix(name: string): string {
  let end = name.length;
  let isBeforeDigit = false;
  for (let index = end - 1; index >= 0; index--) {
    const code = name.charCodeAt(index);
    const isDigit = code >= 0x30 && code <= 0x39;
    if (!isDigit && (isBeforeDigit ? code !== OPEN : !isIgnoredAtEnds(code))) break;
    if (!isDigit) end = index;
    isBeforeDigit = isDigit;
  }
  return name.slice(0, end);
}

function isIgnoredAtEnds(code: number): boolean {
  return isBlank(code) || code === OPEN || code === CLOSE;
}

/**
 * Finds the names that lenient servers may read in a sent name. Lenient servers ignore case, decode escapes, cut the
 * name at a NUL and remove blanks from its ends. PHP, Rails and qs read `[name]`, `name[]` and `name[0]` as `name`.
 * PHP reads `.`, blanks, `+` and other brackets as `_`.
 */
export class NameIndex {
  /** All names of the index; {@link find} returns exactly this list if a sent name may be any name. */
  readonly all: readonly string[];
  /** The names by their folded form. Different names may have the same folded form. */
  readonly #byFolded = new Map<string, string[]>();
  /** Whether a sent name with this first ASCII character may be read as a name, by the character's code. */
  readonly #mayBegin: readonly boolean[];
  #longest = 0;

  constructor(names: Iterable<string>) {
    this.all = [...new Set(names)];
    for (const name of this.all) {
      for (const folded of foldedRuleNames(name)) {
        this.#byFolded.set(folded, [...(this.#byFolded.get(folded) ?? []), name]);
        this.#longest = Math.max(this.#longest, folded.length);
      }
    }
    const initials = new Set([...this.#byFolded.keys()].map((folded) => folded[0]));
    this.#mayBegin = Array.from({ length: 128 }, (_, code) => {
      const letter = String.fromCharCode(code);
      return !PLAIN.test(letter) || initials.has(letter.toLowerCase());
    });
  }

  has(name: string): boolean {
    return this.all.includes(name);
  }

  /** Whether a sent name that begins with this UTF-16 code unit may be read as a name of the index. */
  mayBegin(code: number): boolean {
    return this.#mayBegin[code] ?? true;
  }

  /**
   * Returns the names that some server may read in a sent name. For example, some servers read `name[key]` as a part
   * of `name`. For a sent name that is encoded twice, returns {@link all}.
   */
  find(sent: string): readonly string[] {
    if (PLAIN.test(sent)) return this.#byFolded.get(sent.toLowerCase()) ?? NONE;
    const decoded = decodeName(sent);
    if (decoded.includes("%")) return this.all;
    const name = withoutPrefix(decoded);
    const texts = new Set([name, withoutSuffix(name)]);
    // Some servers end the name at one of its brackets, which begins a key.
    for (let end = name.indexOf("["); end !== -1; end = name.indexOf("[", end + 1)) {
      if (end > this.#longest) break;
      texts.add(name.slice(0, end));
    }
    return [...new Set([...texts].flatMap((text) => this.#byFolded.get(foldName(text)) ?? NONE))];
  }
}

/** The names that a configuration reads. */
export interface SentNames {
  /** The further spellings of each header in a key. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly cookies: NameIndex;
  readonly parameters: NameIndex;
}

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
 * Returns the names with underscores in place of some hyphens, because CGI does not distinguish these characters. For
 * a name with more than two hyphens, returns only the name without hyphens, because each name takes a look-up in each
 * request.
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

interface ValueSource {
  readonly headers: ReadonlyHeaders;
  readonly search: string;
  readonly hasHiddenQuery: boolean;
}

/** The cookies or the parameters of one request whose names some servers read as the same name. */
interface SentPairs {
  /** The encoded values of the first pairs with exactly this name. */
  readonly values: string[];
  /** The number of pairs with this name in any spelling. */
  count: number;
  /** Whether a pair has another name that some servers read as this name. */
  hasOtherSpelling: boolean;
  /** The encoded value of the first pair with this name in any spelling. */
  readonly first: string;
  /** Whether servers disagree about the end of the first pair, or about whether it has this name. */
  isUnclear: boolean;
}

/**
 * The headers, cookies and query parameters of one request. Each value is read at most once. The query and the
 * cookies are split once, even if many rules read them.
 */
export class SentValues {
  readonly #source: ValueSource;
  readonly #names: SentNames | undefined;
  #spellings: Map<string, number> | undefined;
  #search = "";
  #hasAnyName = false;
  readonly #known = new Map<string, unknown>();

  /**
   * @param names the names that the configuration reads. Any other name takes a pass over the query or the cookies
   */
  constructor(source: ValueSource, names?: SentNames) {
    this.#source = source;
    this.#names = names;
  }

  /** Returns the texts that origins may read from a header with a name in lower case, for conditions. */
  header(name: string): SentValue {
    return this.#once(`header ${name}`, () => this.#readHeader(name));
  }

  /** Returns the texts that origins may read from a query parameter, for conditions. */
  parameter(name: string): SentValue {
    return this.#once(`parameter ${name}`, () => this.#readParameter(name));
  }

  /**
   * Returns the value of a header in one spelling, for keys; undefined if the header is missing, or if
   * origins may read different values.
   */
  headerKey(name: string): string | undefined {
    const { headers } = this.#source;
    const value = headers.get(name);
    if (value) {
      const others = this.#names?.headers.get(name) ?? spellingsWithUnderscores(name);
      if (others.some((other) => headers.has(other))) return undefined;
    }
    if (!value || value.length <= MAX_REREAD) return value ? headerValue(name, value) : undefined;
    return this.#once(`header key ${name}`, () => headerValue(name, value));
  }

  /** Returns the value of a query parameter, like {@link headerKey}. */
  parameterKey(name: string): string | undefined {
    return this.#once(`parameter key ${name}`, () => {
      const sent = this.#pairsOf("parameters", name);
      return this.#hasAnyName ? undefined : sent && readSingle(sent, queryValue);
    });
  }

  /** Returns the value of a cookie, like {@link headerKey}. */
  cookieKey(name: string): string | undefined {
    return this.#once(`cookie key ${name}`, () => {
      const sent = this.#pairsOf("cookies", name);
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
    // Servers may confuse a name with another name only if it contains a separator.
    if (/[^a-z\d]/.test(name)) {
      this.#spellings ??= countSpellings(this.#source.headers);
      const count = this.#spellings.get(foldHeaderName(name)) ?? 0;
      if (count > (value === null ? 0 : 1)) return UNCLEAR;
    }
    return value === null ? ABSENT : sentHeader(name, value);
  }

  #readParameter(name: string): SentValue {
    const sent = this.#pairsOf("parameters", name);
    if (this.#hasAnyName) return UNCLEAR;
    if (!sent) return ABSENT;
    // Most servers read `;` as a part of a value, but some read it as a separator.
    if (sent.hasOtherSpelling || this.#search.includes(";")) return UNCLEAR;
    const [single = ""] = sent.values;
    if (sent.count === 1) return sentParameter(single);
    if (sent.count > MAX_DECODED_VALUES) return UNCLEAR;
    return sent.values.every((value) => isClearlyPresent(decodeLeniently(value)))
      ? PRESENT
      : UNCLEAR;
  }

  #pairsOf(kind: "parameters" | "cookies", name: string): SentPairs | undefined {
    const read = (index: NameIndex) =>
      kind === "cookies" ? this.#readCookies(index) : this.#readQuery(index);
    const index = this.#names?.[kind];
    if (!index?.has(name)) return read(new NameIndex([name])).get(name);
    return this.#once(kind, () => read(index)).get(name);
  }

  /** A parameter without `=` has an empty value. */
  #readQuery(index: NameIndex): ReadonlyMap<string, SentPairs> {
    this.#search = this.#source.search;
    this.#hasAnyName = this.#source.hasHiddenQuery;
    const query = new Map<string, SentPairs>();
    const text = this.#search.slice(1);
    let decoded = 0;
    forEachPair(text, AMPERSAND, ({ start, equals, end, after }) => {
      if (!index.mayBegin(text.charCodeAt(start))) return;
      const sent = text.slice(start, equals);
      if (!PLAIN.test(sent)) decoded += sent.length;
      const names = decoded > MAX_DECODED_NAMES ? index.all : index.find(sent);
      if (names === index.all) this.#hasAnyName = true;
      else {
        const value = text.slice(equals + 1, end);
        // Only some servers end a value at `;`.
        for (const name of names) addPair(query, name, sent, value, after === SEMICOLON);
      }
    });
    return query;
  }

  #readCookies(index: NameIndex): ReadonlyMap<string, SentPairs> {
    const cookies = new Map<string, SentPairs>();
    const text = this.#source.headers.get("cookie");
    if (!text) return cookies;
    let decoded = 0;
    /** Returns the names of a cookie. The first letter excludes most cookies. */
    const namesIn = (start: number, end: number): readonly string[] => {
      if (decoded > MAX_DECODED_NAMES) return NONE;
      const first = text.charCodeAt(start) === SPACE ? start + 1 : start;
      if (!index.mayBegin(text.charCodeAt(first))) return NONE;
      const sent = text.slice(first, end);
      if (!PLAIN.test(sent)) decoded += sent.length;
      if (decoded > MAX_DECODED_NAMES) return NONE;
      const names = index.find(sent);
      // No server decodes the name of a cookie twice.
      return names === index.all ? NONE : names;
    };
    forEachPair(text, COMMA, ({ start, equals, end, before, after }) => {
      if (equals === end) return;
      // The runtime joins several headers by commas. Only some servers split cookies at commas.
      const isUnclear = before === COMMA || after === COMMA;
      for (const name of namesIn(start, equals)) {
        addPair(cookies, name, text.slice(start, equals), text.slice(equals + 1, end), isUnclear);
      }
    });
    for (const { index: from, 0: match, 1: sent = "" } of text.matchAll(NAME_AFTER_SPACE)) {
      const end = from + match.length;
      for (const name of namesIn(end - sent.length, end)) addPair(cookies, name, name, "", true);
    }
    if (decoded > MAX_DECODED_NAMES) {
      for (const name of index.all) addPair(cookies, name, name, "", true);
    }
    return cookies;
  }
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
    // The index also finds `name[key]`, but no server reads this as a text.
    isUnclear: isUnclear || !(isExact || isWhole(sent, name)),
  });
}

/** Whether lenient servers read a sent name as exactly this name, and not as one of its parts (`name[key]`). */
function isWhole(sent: string, name: string): boolean {
  const forms = foldedRuleNames(name);
  const text = withoutPrefix(decodeName(sent));
  return forms.has(foldName(text)) || forms.has(foldName(withoutSuffix(text)));
}

/** Returns the value of a name that was sent once. If a name was sent twice, servers read different values. */
function readSingle(
  { count, isUnclear, first }: SentPairs,
  read: (encoded: string) => string | undefined,
): string | undefined {
  return count > 1 || isUnclear ? undefined : read(first);
}

/** Counts the headers that servers may take for the same name. */
function countSpellings(headers: ReadonlyHeaders): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of new Set(headers.keys())) {
    const spelling = foldHeaderName(name);
    counts.set(spelling, (counts.get(spelling) ?? 0) + 1);
  }
  return counts;
}
