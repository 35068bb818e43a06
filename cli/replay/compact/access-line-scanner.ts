import { isDigit, TIME_LENGTH, TimeScanner } from "./time-scanner.ts";

const SPACE = 32;
const QUOTE = 34;
const DASH = 45;
const DOT = 46;
const SLASH = 47;
const ZERO = 48;
const QUESTION_MARK = 63;
const OPENING_BRACKET = 91;
const BACKSLASH = 92;
const CLOSING_BRACKET = 93;
const DELETE = 127;

/** The length of the longest address, which is an IPv6 address with an IPv4 address at its end. */
const MAX_ADDRESS = 45;
const MAX_METHOD = 32;
/** The fewest bytes from the bracket before the time to the end of a line. */
const MIN_REST = TIME_LENGTH + 20;

/**
 * Reads lines of access logs from bytes, if they have the usual form:
 *
 *     ADDRESS - USER [17/May/2015:10:05:03 +0000] "METHOD /TARGET HTTP/1.1" 200 LENGTH …
 *
 * It reads only what rules need. Whatever it reads, {@link AccessLineParser} reads in the same way. That class
 * reads all other lines too, but makes texts and an object for each, which takes several times as long.
 *
 * The fields are those of the last line that was read. Positions are indices in its bytes.
 */
export class AccessLineScanner {
  /** The IPv4 address, in 32 bits; only if `isIPv4`. */
  ipv4 = 0;
  isIPv4 = false;
  /** The end of the address. */
  addressEnd = 0;
  /** In milliseconds since the Unix epoch. */
  at = 0;
  methodAt = 0;
  methodEnd = 0;
  /** The end of the path, which begins after the method and a space. */
  pathEnd = 0;
  targetEnd = 0;
  /** 0 for a request without a response. */
  status = 0;
  /** The index after the status and a space. */
  restAt = 0;

  readonly #time = new TimeScanner();

  /**
   * Reads a line.
   *
   * @param from the index of its first byte
   * @param to the end of the bytes. A newline or other bytes that no usual line has must be before it
   * @returns false if the line has another form; then the fields have no meaning
   */
  read(bytes: Uint8Array, from: number, to: number): boolean {
    const open = this.#readStart(bytes, from);
    if (open === -1 || open + MIN_REST > to || !this.#time.read(bytes, open + 1)) return false;
    this.at = this.#time.at;
    const close = open + 1 + TIME_LENGTH;
    return (
      bytes[close] === CLOSING_BRACKET &&
      bytes[close + 1] === SPACE &&
      bytes[close + 2] === QUOTE &&
      this.#readRequest(bytes, close + 3) &&
      this.#readStatus(bytes, this.targetEnd + 1)
    );
  }

  /** Reads the address. @returns the index of the bracket before the time; -1 for another form */
  #readStart(bytes: Uint8Array, from: number): number {
    this.#readAddress(bytes, from);
    const end = this.addressEnd;
    if (bytes[end] !== SPACE || bytes[end + 1] !== DASH || bytes[end + 2] !== SPACE) return -1;
    let at = end + 3;
    // The name of a user. It ends at the first space, and has no bracket.
    for (;;) {
      const byte = bytes[at] as number;
      if (byte === SPACE) break;
      if (byte < SPACE || byte >= DELETE || byte === OPENING_BRACKET) return -1;
      at++;
    }
    return bytes[at + 1] === OPENING_BRACKET ? at + 1 : -1;
  }

  /** Reads an IPv4 address in its canonical notation, or finds the end of another address. */
  #readAddress(bytes: Uint8Array, from: number): void {
    let index = from;
    let value = 0;
    let dots = 0;
    let part = -1;
    this.isIPv4 = false;
    for (; index < from + MAX_ADDRESS; index++) {
      const byte = bytes[index] as number;
      const digit = byte - ZERO;
      if (digit >= 0 && digit <= 9) {
        // A leading zero would mean octal to some programs.
        if (part === 0) break;
        part = (part === -1 ? 0 : part * 10) + digit;
        if (part > 255) break;
      } else if (byte === DOT && part !== -1) {
        value = (value << 8) | part;
        dots++;
        part = -1;
      } else if (byte === SPACE && dots === 3 && part !== -1) {
        this.ipv4 = ((value << 8) | part) >>> 0;
        this.isIPv4 = true;
        this.addressEnd = index;
        return;
      } else break;
    }
    while (index <= from + MAX_ADDRESS && (bytes[index] as number) > SPACE) index++;
    this.addressEnd = index;
  }

  /** Reads `METHOD /TARGET HTTP/1.1"`. */
  #readRequest(bytes: Uint8Array, from: number): boolean {
    let index = from;
    while (isCapital(bytes[index] as number)) index++;
    const length = index - from;
    if (length === 0 || length > MAX_METHOD || bytes[index] !== SPACE) return false;
    if (bytes[index + 1] !== SLASH) return false;
    this.methodAt = from;
    this.methodEnd = index;
    index += 2;
    this.pathEnd = 0;
    for (;;) {
      const byte = bytes[index] as number;
      if (byte <= QUOTE) {
        if (byte === SPACE) break;
        if (byte < SPACE || byte === QUOTE) return false;
      } else if (byte === QUESTION_MARK) {
        if (this.pathEnd === 0) this.pathEnd = index;
      } else if (byte === BACKSLASH || byte >= DELETE) return false;
      index++;
    }
    this.targetEnd = index;
    if (this.pathEnd === 0) this.pathEnd = index;
    return true;
  }

  /** Reads `HTTP/1.1" 200 ` and a character of the length. */
  #readStatus(bytes: Uint8Array, from: number): boolean {
    if (!isHttp(bytes, from)) return false;
    let index = from + 5;
    while (isVersion(bytes[index] as number)) index++;
    if (bytes[index] !== QUOTE || bytes[index + 1] !== SPACE || bytes[index + 5] !== SPACE) {
      return false;
    }
    const hundreds = (bytes[index + 2] as number) - ZERO;
    const tens = (bytes[index + 3] as number) - ZERO;
    const ones = (bytes[index + 4] as number) - ZERO;
    const length = bytes[index + 6] as number;
    if (!isDigit(hundreds) || !isDigit(tens) || !isDigit(ones)) return false;
    if (length !== DASH && !isDigit(length - ZERO)) return false;
    this.status = hundreds * 100 + tens * 10 + ones;
    this.restAt = index + 6;
    return true;
  }
}

function isCapital(byte: number): boolean {
  return byte >= 65 && byte <= 90;
}

/** Whether a byte is a digit or a dot. */
function isVersion(byte: number): boolean {
  return isDigit(byte - ZERO) || byte === DOT;
}

function isHttp(bytes: Uint8Array, from: number): boolean {
  return (
    bytes[from] === 72 &&
    bytes[from + 1] === 84 &&
    bytes[from + 2] === 84 &&
    bytes[from + 3] === 80 &&
    bytes[from + 4] === SLASH
  );
}
