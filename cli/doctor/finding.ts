import type { Severity } from "./code.ts";
import { CODES, type FindingCode } from "./codes.ts";

/** One result of a check. */
export interface Finding {
  /** The stable name, which docs/doctor.md explains. */
  readonly code: FindingCode;
  readonly severity: Severity;
  /** The measured value as a text. Contains no secret. */
  readonly value: string;
  /** The measured values as numbers and texts, for programs. */
  readonly measured?: Readonly<Record<string, number | string | readonly number[]>>;
  /** The cure. Undefined if the severity is `ok`. */
  readonly advice?: string;
}

/** Creates a finding. Its severity and its advice come from {@link CODES}. */
export function finding(code: FindingCode, value: string, measured?: Finding["measured"]): Finding {
  return { code, ...CODES[code], value, ...(measured && { measured }) };
}

/** The maximum length of a text that a server sent, in characters. */
const MAX_QUOTED = 160;
/**
 * The length from which a secret is hidden, in characters. A shorter secret is not hidden: it may be
 * part of common words, and it protects nothing.
 */
const MIN_SECRET = 4;
/** The maximum length of any text of a report, in characters. */
const MAX_PRINTED = 10_000;

/** Control characters, line separators, and characters that change the direction of a text. */
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it removes
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/g;

/**
 * Returns a text in a form that is safe to print: on one line, without characters that a terminal
 * obeys, and without the given secrets.
 */
export function printable(text: string, secrets: readonly string[] = []): string {
  return secrets
    .filter((secret) => secret.length >= MIN_SECRET)
    .reduce((rest, secret) => rest.replaceAll(secret, "…"), text)
    .slice(0, MAX_PRINTED)
    .replace(UNPRINTABLE, " ")
    .trim();
}

/** Returns a text of a server in a form that is safe to print, and that is not too long. */
export function quoted(text: string, secrets: readonly string[] = []): string {
  const clean = printable(text, secrets);
  return clean.length > MAX_QUOTED ? `${clean.slice(0, MAX_QUOTED)}…` : clean;
}

/** Whether a value of an answer is a text or a number. Only these have a safe text form. */
export function isText(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

/** Returns a count with its noun: `1 key`, `2 keys`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
