import type { FaultCode } from "../src/config/faults.ts";

/**
 * The codes of `weir check` with their severities. A code stays the same in later versions. docs/codes.md
 * explains each of them, and a test compares the page with this table.
 *
 * - `"fault"`: the deployment cannot work as configured.
 * - `"warning"`: the setting is valid, but the author may have meant something else.
 */
export const CODES = {
  config: "fault",

  "no-rules": "warning",
  "nothing-enforced": "warning",
  milliseconds: "warning",
  "limit-never-binds": "warning",
  "denies-everybody": "warning",
  "ban-shorter-than-window": "warning",
  "wait-has-little-effect": "warning",
  "async-exceeds-limit": "warning",
  "async-has-no-effect": "warning",
  "cost-above-limit": "fault",
  "max-cost-above-limit": "warning",
  "cost-without-max": "warning",
  "dotted-claim": "warning",
  "tier-by-client": "warning",
  "tier-without-sliding": "warning",
  "exempt-by-text": "warning",
  "exempts-everybody": "fault",
  "exempts-many": "warning",
  "unknown-country": "warning",
  "unknown-method": "warning",
  "path-notation": "warning",
  "exact-path": "warning",
  "client-header": "warning",
  "chosen-match": "warning",
  "chosen-except": "warning",
  "no-address-limit": "warning",
  "made-up-keys": "warning",
  "fails-open": "warning",
  "late-charge": "warning",
  "ipv6-prefix": "warning",

  "wrangler-unread": "fault",
  "environment-unknown": "fault",
  "compatibility-date": "fault",
  "hang-ups-unseen": "warning",
  "native-limiter-unbound": "fault",
  "usage-unbound": "warning",
  "counters-unbound": "fault",
  "control-unbound": "warning",
  "class-without-sqlite": "fault",
  "class-undeclared": "fault",
  "upstash-url-invalid": "fault",
  "memory-store": "warning",
  "prefix-invalid": "fault",
  "shared-prefix": "warning",
  "mode-invalid": "fault",
  "rules-not-enforced": "warning",
  "var-misspelt": "warning",
  "key-secret-short": "fault",
  "secret-not-required": "warning",
  "secret-in-vars": "warning",
  "same-route": "warning",
  "route-misses-rule": "warning",
  "route-by-path": "warning",
  "route-any-prefix": "warning",
  "workers-dev": "warning",
  "preview-urls": "warning",
  "workers-cache": "warning",
  "strictly-public-fetch": "warning",
  "no-origin": "fault",
  "origin-unbound": "fault",
  "origin-url-invalid": "fault",
  "origin-loop": "fault",
  "private-origin": "warning",
} as const satisfies Record<string, "fault" | "warning">;

/**
 * The URL of the page that explains the codes. The path of a file in the package would depend on the
 * package manager.
 */
export const CODES_PAGE = "https://github.com/edge-weir/edge-weir/blob/main/docs/codes.md";

/** How serious a finding is. `unknown` means that a value could not be measured. */
export type Severity = "ok" | "unknown" | "warning" | "fault";

/** What `weir check` and `weir doctor` report. No text contains a secret. */
export interface Finding {
  /** The stable name, which docs/codes.md explains. */
  readonly code: string;
  readonly severity: Severity;
  /** The effect of a setting, or a measured value, as a sentence without its full stop. */
  readonly message: string;
  /**
   * The recommended change, as a sentence without its full stop; undefined if the message has it, or if there is
   * none.
   */
  readonly cure?: string | undefined;
}

/** A finding of `weir check` in one file. The caller adds the file and the environment. */
export interface LocalFinding extends Finding {
  readonly code: keyof typeof CODES;
  readonly severity: "fault" | "warning";
  /** The path of the setting in its file, such as `rules[0].key`; empty for the whole file. */
  readonly path: string;
}

export interface CheckFinding extends LocalFinding {
  /** The kind of the fault, if the code is `config`. */
  readonly fault?: FaultCode;
  /**
   * The file with the setting: the path of the configuration as given on the command line, or the
   * name of wrangler's file.
   */
  readonly file: string;
  /** The environment in wrangler's configuration; undefined for its top level. */
  readonly environment?: string | undefined;
}

/** Creates a finding of `weir check`. Its severity comes from {@link CODES}. */
export function found(
  code: LocalFinding["code"],
  path: string,
  message: string,
  cure: string,
): LocalFinding {
  return { code, severity: CODES[code], path, message, cure };
}
