import { formatCount } from "../../src/admin/format.ts";
import { CODES_PAGE, type Finding, type Severity } from "../finding.ts";
import { jsonText, printable } from "../print/text.ts";

/** The codes of findings that need no cure. */
const OK = [
  "url-ok",
  "token-ok",
  "round-trip-ok",
  "clock-ok",
  "eviction-off",
  "vectors-ok",
  "cleaned-up",
  "worker-ok",
] as const;

/** The cures of faults, by code. */
const FAULTS = {
  "url-not-https":
    "Use the https URL of the database, because http sends the token and all keys without encryption",
  "url-invalid":
    "Set UPSTASH_REDIS_REST_URL to the REST URL from the Upstash console, such as https://eu1-name-12345.upstash.io; a URL that begins with redis:// or rediss:// does not work",
  unreachable:
    "Compare the host name with the REST URL in the Upstash console, and check that the database exists and that this machine has a network",
  "no-answer":
    "Check the status page of the database's provider. Until the database answers, the onError of each rule decides every request",
  "not-a-rest-api":
    "Set UPSTASH_REDIS_REST_URL to the REST URL of the database. The answer came from another kind of server or from a proxy in front of the database",
  "token-wrong":
    "Copy UPSTASH_REDIS_REST_TOKEN from the same database as the URL, without quotation marks and white space",
  "token-malformed":
    "Copy the token again, without line breaks, blanks and quotation marks. A token consists of printable ASCII characters",
  "token-read-only":
    "Use the standard token, UPSTASH_REDIS_REST_TOKEN of the Upstash console. With the read-only token, no request can be counted",
  "keys-not-permitted":
    "Allow the user of the token to use all keys that begin with the prefix of Weir, such as ~weir:* in the ACL, or set WEIR_PREFIX to the prefix that the user may write",
  "write-refused":
    "Follow the error message of the database. While it refuses writes, nothing is counted",
  "database-full":
    "Delete data that is not needed, or move to a larger plan. Do not turn eviction on, because it deletes counters",
  "quota-used-up":
    "Move to a plan with more commands, or lower the number of commands: docs/cost.md lists the commands of decisions, and leases save most of them",
  "round-trip-too-slow":
    "Raise timeoutMs above the worst round trip, or choose a region of the database near the clients. The round trip of the Worker may be shorter than that of this machine; --at measures it",
  "clock-wrong":
    "Compare both clocks with a third one, for example with date -u on another machine, and synchronize the wrong one by NTP. With such a clock, windows do not begin when the clients' minutes, hours and days begin",
  "scripts-refused":
    "Use a token whose user may run EVAL and EVALSHA. Weir makes every decision with a script",
  "script-flag-refused":
    'Set clock: "store". With clock: "edge", the first line of the script is a flag of Upstash, which this server refuses',
  "eviction-on":
    "Turn eviction off in the Upstash console, or set maxmemory-policy noeviction in Redis. An evicted counter starts again from zero, so clients get their limit a second time",
  "vector-differs":
    "Do not use this database. Its commands return other results than Redis, so limits would not hold. Report the output of this command at https://github.com/edge-weir/edge-weir/issues",
  "vectors-failed":
    "Follow the error message of the database, and then run the command again. Scripts need Upstash Redis, or Redis 6.2 or later that does not rename commands with rename-command. While decisions fail, the onError of each rule decides",
  "not-finished": "Run the command again. The checks that are missing from this list were not made",
  "worker-unreachable":
    "Compare the host name of --at with the routes and domains of the Worker, and check that the Worker is deployed, that its name has a DNS record, and that this machine has a network",
  "worker-no-answer":
    "Run the command again. If the Worker still does not answer, run npx wrangler tail, with --env NAME if the URL belongs to an environment, to read its log while the command runs",
  "worker-no-doctor":
    "Run npx wrangler secret put WEIR_ADMIN_TOKEN, with --env NAME if the URL belongs to an environment. Its value needs at least 32 characters. Set the environment variable WEIR_ADMIN_TOKEN of this command to the same text, and check that the URL leads to this Worker",
  "worker-busy": "Wait ten seconds, and run the command again",
  "worker-binding":
    "Set the binding, the var or the secret that the text names, in the environment that this Worker was deployed to",
  "worker-store-failed": "Run weir doctor without --at, with the same database, to find the reason",
} as const;

/** The cures of warnings. */
const WARNINGS = {
  "round-trip-slow":
    "Raise timeoutMs, or choose a region of the database near the clients. The round trip of the Worker may be shorter than that of this machine; --at measures it",
  "clock-skewed":
    'Compare both clocks with a third one, for example with date -u on another machine, and synchronize the wrong one by NTP. With clock: "store", a wrong clock of the store moves the start of every window by this time',
  "keys-left": "Wait: these keys expire without help, and no rule reads them",
  "worker-mode":
    "Remove the var WEIR_MODE from the environment that this Worker was deployed to, unless it must not deny requests",
} as const;

/** The cures of findings about values that could not be measured. */
const UNKNOWN = {
  "clock-unknown":
    "Run the command again on a faster connection, or compare the time of the database (TIME) by hand",
  "eviction-unknown": "Look at the eviction setting in the console of the database. It must be off",
} as const;

/** One code: how serious its findings are, and their cure. */
interface Code {
  readonly severity: Severity;
  /** Undefined for the severity `ok`. */
  readonly cure?: string;
}

export type FindingCode =
  | (typeof OK)[number]
  | keyof typeof FAULTS
  | keyof typeof WARNINGS
  | keyof typeof UNKNOWN;

/** The severity and the cure of each stable code. docs/codes.md explains the codes. */
export const CODES = Object.fromEntries([
  ...OK.map((code) => [code, { severity: "ok" }] as const),
  ...withSeverity("fault", FAULTS),
  ...withSeverity("warning", WARNINGS),
  ...withSeverity("unknown", UNKNOWN),
]) as Readonly<Record<FindingCode, Code>>;

function withSeverity(severity: Severity, cures: Readonly<Record<string, string>>) {
  return Object.entries(cures).map(([code, cure]) => [code, { severity, cure }] as const);
}

/** A finding of `weir doctor`. */
export interface DoctorFinding extends Finding {
  readonly code: FindingCode;
  /** The measured values as numbers, for programs. */
  readonly measured?: Readonly<Record<string, number | readonly number[]>>;
}

/** Creates a finding. Its severity and its cure come from {@link CODES}. */
export function finding(
  code: FindingCode,
  message: string,
  measured?: DoctorFinding["measured"],
): DoctorFinding {
  return { code, ...CODES[code], message, ...(measured && { measured }) };
}

/** The database or the Worker that the doctor examined, and the settings of the run. */
export interface Subject {
  /** The noun for the last line: "The database is ok." */
  readonly noun: string;
  /** A sentence for the first line of the report. */
  readonly headline: string;
  /** The values of the headline, for programs. They contain no secret. */
  readonly fields: Readonly<Record<string, string | undefined>>;
  /** The texts that the report must not contain. */
  readonly secrets: readonly string[];
}

/** Returns the report as a text for people. */
export function textReport(subject: Subject, unsafe: readonly DoctorFinding[]): string {
  const findings = safeFindings(subject, unsafe);
  const width = Math.max(...findings.map(({ code }) => code.length));
  const lines = findings.flatMap(({ code, severity, message, cure }) => [
    `  ${severity.padEnd(7)}  ${code.padEnd(width)}  ${message}`,
    ...(cure ? [`           → ${cure}.`] : []),
  ]);
  const headline = printable(subject.headline);
  return [headline, "", ...lines, "", summaryOf(subject.noun, findings)].join("\n");
}

/** Returns the report as JSON. */
export function jsonReport(subject: Subject, unsafe: readonly DoctorFinding[]): string {
  const findings = safeFindings(subject, unsafe);
  // The fields contain no text of a server.
  const fields = Object.entries(subject.fields).map(([name, value]) => [
    name,
    value && printable(value),
  ]);
  return jsonText({ ok: isGood(findings), ...Object.fromEntries(fields), findings });
}

/**
 * Makes all texts of findings safe to print, because servers send parts of them. So no check can forget this step.
 */
function safeFindings({ secrets }: Subject, findings: readonly DoctorFinding[]): DoctorFinding[] {
  return findings.map((each) => ({ ...each, message: printable(each.message, secrets) }));
}

function isGood(findings: readonly Finding[]): boolean {
  return count(findings, "fault") + count(findings, "warning") === 0;
}

/** Returns the exit code: 1 for faults, and with `strict` also for warnings; otherwise 0. */
export function exitCodeOf(findings: readonly Finding[], strict: boolean): number {
  return count(findings, "fault") > 0 || (strict && !isGood(findings)) ? 1 : 0;
}

function summaryOf(noun: string, findings: readonly Finding[]): string {
  const [faults, warnings] = [count(findings, "fault"), count(findings, "warning")];
  const unknown = count(findings, "unknown");
  const rest = unknown > 0 ? ` ${formatCount(unknown, "value")} could not be read.` : "";
  if (faults + warnings === 0) return `${noun} is ok.${rest}`;
  return `${formatCount(faults, "fault")}, ${formatCount(warnings, "warning")}.${rest} Each code: ${CODES_PAGE}`;
}

function count(findings: readonly Finding[], wanted: Severity): number {
  return findings.filter(({ severity }) => severity === wanted).length;
}
