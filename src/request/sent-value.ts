import { readCredential } from "./credentials.ts";
import {
  decodeLeniently,
  hasCredential,
  hasUnclearCommas,
  MAX_ENCODED_LENGTH,
} from "./request-values.ts";
import { decodeEscapes, foldText, isAscii, trimBlanks } from "./text-folding.ts";

/**
 * A header field or a query parameter of a request, with all texts that origins may read from it.
 */
export interface SentValue {
  /** Undefined if some origins may read the value as absent, for example because it is empty. */
  readonly isPresent: boolean | undefined;
  /** Undefined if the value is absent, or if the texts that origins may read are not known. */
  readonly text?: SentText;
}

export const ABSENT: SentValue = { isPresent: false };
export const PRESENT: SentValue = { isPresent: true };
export const UNCLEAR: SentValue = { isPresent: undefined };

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
 * Reads a header field. If a field was sent twice, the runtime has joined both values with a comma.
 */
export function sentHeader(name: string, value: string): SentValue {
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
export function sentParameter(encoded: string): SentValue {
  if (encoded.length > MAX_ENCODED_LENGTH) return UNCLEAR;
  const lenient = decodeLeniently(encoded);
  const isPresent = isClearlyPresent(lenient);
  // Some servers decode a value a second time.
  if (ESCAPE.test(lenient) || isTooLong(lenient)) return { isPresent };
  return { isPresent, text: new SentText(exactTexts(encoded), lenient) };
}

/** Whether no origin reads an encoded value as empty; undefined if some origin may do so. */
export function isClearlyPresent(lenient: string): true | undefined {
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
