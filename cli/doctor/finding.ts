import type { Severity } from "./code.ts";
import { CODES, type FindingCode } from "./codes.ts";

/** One result of a check. */
export interface Finding {
  /** The stable name, which docs/doctor.md explains. */
  readonly code: FindingCode;
  readonly severity: Severity;
  /** What was measured, as a text. Contains no secret. */
  readonly value: string;
  /** The same as numbers and texts, for programs. */
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
 * Returns a text of a server in a form that is safe to print: on one line, without control
 * characters, not too long, and without the given secrets.
 */
export function quoted(text: string, secrets: readonly string[] = []): string {
  const clean = secrets
    .filter((secret) => secret !== "")
    .reduce((rest, secret) => rest.replaceAll(secret, "…"), text.slice(0, 10_000))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it removes
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")
    .trim();
  return clean.length > MAX_QUOTED ? `${clean.slice(0, MAX_QUOTED)}…` : clean;
}

/** Returns a count with its noun: `1 key`, `2 keys`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
