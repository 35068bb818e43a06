import { isBlank } from "./text-folding.ts";

/**
 * Returns a function that tests whether lenient servers would read a sent name as the given name.
 * Such servers ignore case, decode escapes, cut the name at a NUL and remove blanks from its ends.
 * PHP, Rails and qs read `[name]`, `name[]` and `name[0]` as `name`. Rack 2 reads `]name` and
 * `[]name` as `name` too. PHP reads `.`, blanks, `+` and other brackets as `_`.
 *
 * The function reads the sent name one code unit at a time and creates no new text, because one
 * request can contain thousands of names.
 *
 * @param name the name in a rule's key
 */
export function createNameTest(name: string): (sentName: string) => boolean {
  const expected = foldName(name);
  return function isNamed(sentName) {
    // The name in a rule's key may contain what looks like an escape.
    if (sentName === name) return true;
    const reader = new NameReader(sentName);
    let code = skipStart(reader);
    for (const letter of expected) {
      if (foldCode(code) !== letter) return false;
      code = reader.next();
    }
    return isSuffix(code, reader);
  };
}

/** Skips blanks and brackets at the start of a name, and returns the first code unit after them. */
function skipStart(reader: NameReader): number {
  let code = reader.next();
  while (code > 0 && (isBlank(code) || code === OPEN || code === CLOSE)) code = reader.next();
  return code;
}

/**
 * Whether lenient servers ignore the rest of a sent name, after the expected name. They ignore
 * blanks, brackets (empty or around digits), and everything after a NUL.
 */
function isSuffix(first: number, reader: NameReader): boolean {
  let inBrackets = false;
  for (let code = first; code > 0; code = reader.next()) {
    const isDigit = code >= 0x30 && code <= 0x39;
    if (code === OPEN) inBrackets = true;
    else if (code === CLOSE) inBrackets = false;
    else if (!isBlank(code) && !(inBrackets && isDigit)) return false;
  }
  return true;
}

const END = -1;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const UNDERSCORE = 0x5f;

/** Returns the folded code units of a name, without brackets around the name or after it. */
function foldName(name: string): number[] {
  const bare = name.replace(/(\[\d*\])+$/, "").replace(/^\[(.+)\]$/, "$1");
  return Array.from({ length: bare.length }, (_, index) => foldCode(bare.charCodeAt(index)));
}

/**
 * Reads a name one UTF-16 code unit at a time. It decodes plus signs and escapes, also `%u0071` and
 * ASCII characters that are encoded in more bytes than necessary.
 */
class NameReader {
  readonly #name: string;
  #index: number;

  constructor(name: string, index = 0) {
    this.#name = name;
    this.#index = index;
  }

  /** Returns a second reader that continues at the same position. */
  copy(): NameReader {
    return new NameReader(this.#name, this.#index);
  }

  /** @returns the next code unit, or `END` */
  next(): number {
    if (this.#index >= this.#name.length) return END;
    const code = this.#name.charCodeAt(this.#index++);
    if (code === 0x2b) return 0x20;
    if (code !== 0x25) return code;
    return this.#escapeOfNoStandard() ?? this.#escape();
  }

  /** Reads `u0071` after a percent sign. */
  #escapeOfNoStandard(): number | undefined {
    if ((this.#name.charCodeAt(this.#index) | 0x20) !== 0x75) return undefined;
    const code = this.#byteAt(this.#index + 1) * 256 + this.#byteAt(this.#index + 3);
    if (Number.isNaN(code)) return undefined;
    this.#index += 5;
    return code;
  }

  /** Reads two hexadecimal digits after a percent sign, and all escapes of the same character. */
  #escape(): number {
    const first = this.#byteAt(this.#index);
    if (Number.isNaN(first)) return 0x25;
    this.#index += 2;
    if (first < 0x80) return first;
    const length = lengthAfter(first);
    let code = first & (0x3f >> length);
    let index = this.#index;
    for (let count = 0; count < length; count++, index += 3) {
      const byte = this.#name.charCodeAt(index) === 0x25 ? this.#byteAt(index + 1) : Number.NaN;
      // A byte that is not UTF-8 becomes a space, because some servers remove it.
      if (!(byte >= 0x80 && byte < 0xc0)) return 0x20;
      code = (code << 6) | (byte & 0x3f);
    }
    this.#index = index;
    // This comparison need not distinguish characters above U+FFFF, so each counts as a space.
    return length === 0 || code > 0xffff ? 0x20 : code;
  }

  /** @returns NaN if there are no two hexadecimal digits */
  #byteAt(index: number): number {
    return hexDigit(this.#name.charCodeAt(index)) * 16 + hexDigit(this.#name.charCodeAt(index + 1));
  }
}

/** Returns how many bytes of UTF-8 follow this first byte of a character. */
function lengthAfter(first: number): number {
  if (first < 0xc0 || first >= 0xf8) return 0;
  if (first < 0xe0) return 1;
  return first < 0xf0 ? 2 : 3;
}

/** @returns the value of a hexadecimal digit; NaN for any other code unit */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

/**
 * Folds a code unit. Full-width characters become ASCII, and upper case becomes lower case.
 * Characters that PHP replaces by an underscore become an underscore.
 */
function foldCode(code: number): number {
  const narrow = code >= 0xff01 && code <= 0xff5e ? code - 0xfee0 : code;
  if (narrow >= 0x41 && narrow <= 0x5a) return narrow + 0x20;
  // NUL and END both end a name.
  if (narrow <= 0) return narrow;
  if (isBlank(narrow) || BECOME_UNDERSCORES.has(narrow)) return UNDERSCORE;
  if (narrow < 0x80) return narrow;
  return String.fromCharCode(narrow).toUpperCase().toLowerCase().charCodeAt(0);
}

/** The dot and the brackets, which PHP replaces by an underscore. */
const BECOME_UNDERSCORES: ReadonlySet<number> = new Set([0x2e, OPEN, CLOSE]);

/** A node of the trie of names. Each edge is a folded code unit. */
interface Node {
  readonly next: Map<number, Node>;
  /** The names that end at this node. Different names may have the same folded form. */
  readonly names: string[];
}

/**
 * Finds the names that lenient servers may read in a sent name. It reads each sent name once for
 * all names together, because a request may have thousands of names, and a configuration hundreds.
 */
export class NameIndex {
  readonly #root: Node = { next: new Map(), names: [] };
  /** All names of the index. {@link find} returns this list itself if a sent name may be any name. */
  readonly all: readonly string[];

  readonly #names: ReadonlySet<string>;
  /** The names by their folded form, for sent names that all servers read in one way. */
  readonly #byFolded = new Map<string, readonly string[]>();

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    this.all = [...this.#names];
    for (const name of this.all) {
      let node = this.#root;
      for (const code of foldName(name)) {
        const child = node.next.get(code) ?? { next: new Map(), names: [] };
        node.next.set(code, child);
        node = child;
      }
      node.names.push(name);
      this.#byFolded.set(String.fromCharCode(...foldName(name)), node.names);
    }
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Whether a name of the index may be read in a sent name that begins with this code unit. */
  readonly mayBegin = (code: number): boolean =>
    !isPlain(code) || this.#root.next.has(foldCode(code));

  /**
   * Returns the names that some server may read in a sent name. For example, some servers read
   * `name[key]` as a part of `name`. If the sent name is encoded twice, the result is {@link all}.
   */
  find(sent: string): readonly string[] {
    if (PLAIN.test(sent)) return this.#byFolded.get(sent.toLowerCase()) ?? NONE;
    if (isEncodedTwice(sent)) return this.all;
    const reader = new NameReader(sent);
    let code = skipStart(reader);
    let node: Node | undefined = this.#root;
    let found: readonly string[] = NONE;
    while (node) {
      // A bracket after the name begins a key, or ends the name.
      if (node.names.length > 0 && (code === OPEN || isSuffix(code, reader.copy()))) {
        found = found === NONE ? node.names : [...found, ...node.names];
      }
      if (code <= 0) break;
      node = node.next.get(foldCode(code));
      code = reader.next();
    }
    return found;
  }
}

/** Whether lenient servers read a code unit at the start of a name as itself, except for case. */
function isPlain(code: number): boolean {
  const letter = code | 0x20;
  return (letter >= 0x61 && letter <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x5f;
}

const NONE: readonly string[] = [];
/** Matches names in which lenient servers ignore only case. */
const PLAIN = /^[\w-]+$/;

function isEncodedTwice(sent: string): boolean {
  if (!sent.includes("%")) return false;
  const reader = new NameReader(sent);
  for (let code = reader.next(); code !== -1; code = reader.next()) if (code === 0x25) return true;
  return false;
}
