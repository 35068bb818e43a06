import { formatCount } from "../../src/admin/format.ts";
import type { KeyExpression, KeyPart } from "../../src/config/key.ts";
import type { Conditions } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import { keyPartName } from "../../src/request/identity.ts";
import type { LogFacts } from "./log-request.ts";
import type { LogProgress } from "./progress.ts";

/** Something that the reader of a report must know. */
export interface ReportNote {
  /** A stable name, such as `key-not-logged`. */
  readonly code: string;
  /** The rule that the note is about; undefined for the whole report. */
  readonly rule?: string;
  /** What was assumed or left out, why, and how to change that. */
  readonly text: string;
}

/** Something that a rule needs and that the log does not state. */
interface UnknownFact {
  /** As part of a sentence, such as `the header field x-api-key`. */
  readonly name: string;
  /** The option that makes the log state it, such as `--host NAME`; undefined if there is none. */
  readonly cure: string | undefined;
}

/** Whether the log states a header field of requests. */
export function statesHeader(facts: LogFacts, name: string): boolean {
  if (facts.headers.has(name)) return true;
  if (name === "content-length") return facts.bodyBytes;
  return name === "host" ? facts.host : false;
}

/** Whether the log states a header field of responses. */
function statesResponseHeader({ responseHeaders }: LogFacts, name: string): boolean {
  return responseHeaders.has(name);
}

/** The header fields by which a preflight is recognised. */
const OF_PREFLIGHTS = ["origin", "access-control-request-method"];

/** Whether the log shows which OPTIONS requests are preflights of browsers. */
export function showsPreflights(facts: LogFacts): boolean {
  return OF_PREFLIGHTS.every((name) => statesHeader(facts, name));
}

/** Returns the fact that the log lacks to state the value of a part of a key; undefined if it states it. */
function unknownKeyPart(part: KeyPart, facts: LogFacts): UnknownFact | undefined {
  switch (part.kind) {
    case "ip":
      return facts.ip ? undefined : UNKNOWN.ip;
    case "header":
      return statesHeader(facts, part.name) ? undefined : unknownHeader(part.name);
    case "cookie":
      return statesHeader(facts, "cookie") ? undefined : unknownHeader("cookie");
    case "host":
      return facts.host ? undefined : UNKNOWN.host;
    case "country":
      return facts.country ? undefined : UNKNOWN.country;
    case "asn":
      return facts.asn ? undefined : UNKNOWN.asn;
    case "ja4":
      return facts.ja4 ? undefined : UNKNOWN.ja4;
    default:
      return undefined;
  }
}

function unknownHeader(name: string): UnknownFact {
  return { name: `the header field ${name}`, cure: `--map header:${name}=FIELD` };
}

function unknownResponseHeader(name: string): UnknownFact {
  return {
    name: `the header field ${name} of responses`,
    cure: `--map response-header:${name}=FIELD`,
  };
}

const UNKNOWN = {
  ip: { name: "the client's address", cure: "--map ip=FIELD" },
  host: { name: "the host", cure: "--host NAME" },
  country: { name: "the client's country", cure: "--map country=FIELD" },
  asn: { name: "the client's AS number", cure: "--map asn=FIELD" },
  bots: { name: "whether the client is a verified bot", cure: "--map bot=FIELD" },
  ja4: { name: "the client's JA4 fingerprint", cure: "--map ja4=FIELD" },
  status: { name: "the response's status", cure: "--map status=FIELD" },
  bodyBytes: { name: "the length of the request's body", cure: "--map body-bytes=FIELD" },
} as const satisfies Record<string, UnknownFact>;

/** The stable names of the reasons why a log does not suffice for a rule. */
type NeedCode =
  | "key-not-logged"
  | "host-not-logged"
  | "condition-not-logged"
  | "tier-not-logged"
  | "cost-not-logged"
  | "status-not-logged"
  | "custom-function"
  | "token-not-verified"
  | "programs-only";

/** Something that a rule needs and that a replay does not have. */
export interface UnmetNeed {
  readonly code: NeedCode;
  /** What is missing and for which field of the rule, as a sentence. */
  readonly reason: string;
  /** The option that makes the log state it; undefined if there is none. */
  readonly cure?: string | undefined;
  /** Whether a request without it is possible, so that it may be treated as absent in each request. */
  readonly canBeAbsent: boolean;
}

/** Returns what a rule needs and the log does not state. An empty list: the rule can be replayed. */
export function unmetNeedsOf(rule: Rule, facts: LogFacts): UnmetNeed[] {
  if (rule.for === "programs") return [PROGRAMS_ONLY];
  const { except } = rule.match;
  const needs = [
    ...conditionNeeds(rule.match, "match", facts),
    ...(except ? conditionNeeds(except, "match.except", facts) : []),
    ...rule.key.flatMap((alternatives) => keyNeeds(alternatives, "key", facts)),
    ...(rule.tiers?.by ?? []).flatMap((each) => keyNeeds(each, "tiers.by", facts)),
    ...costNeeds(rule, facts),
  ];
  if (facts.isMappable !== false) return needs;
  return needs.map((need) => (need.cure?.startsWith("--map") ? { ...need, cure: LOG_JSON } : need));
}

const LOG_JSON = "use a log of JSON lines that states it, because --map is only for these";

/** Returns what makes up for a need, to complete a sentence; undefined if nothing does. */
export function cureText({ cure, canBeAbsent }: UnmetNeed): string | undefined {
  const absent = canBeAbsent && "--missing-as-absent";
  if (cure !== LOG_JSON) {
    const options = [cure, absent].filter(Boolean);
    return options.length === 0 ? undefined : `add ${options.join(" or ")}`;
  }
  return absent ? `${cure}; or add ${absent}` : cure;
}

const PROGRAMS_ONLY: UnmetNeed = {
  code: "programs-only",
  reason: "It counts only calls of programs, which no log has.",
  canBeAbsent: false,
};

function notLogged(code: NeedCode, { name, cure }: UnknownFact, field: string): UnmetNeed {
  return {
    code,
    reason: `The log does not state ${name}, which \`${field}\` needs.`,
    cure,
    canBeAbsent: true,
  };
}

function conditionNeeds(
  { hosts, headers = [], ips, countries, asns, bots }: Conditions,
  field: string,
  facts: LogFacts,
): UnmetNeed[] {
  const needs: UnmetNeed[] = [];
  const add = (condition: string, fact: UnknownFact, code: NeedCode = "condition-not-logged") =>
    needs.push(notLogged(code, fact, `${field}.${condition}`));
  if (hosts && !facts.host) add("hosts", UNKNOWN.host, "host-not-logged");
  for (const { name } of headers) {
    if (!statesHeader(facts, name)) add("headers", unknownHeader(name));
  }
  if (ips && !facts.ip) add("ips", UNKNOWN.ip);
  if (countries && !facts.country) add("countries", UNKNOWN.country);
  if (asns && !facts.asn) add("asns", UNKNOWN.asn);
  if (bots && !facts.bots) add("bots", UNKNOWN.bots);
  return needs;
}

/** Kinds of key that every request has, so that no later alternative is used. */
const IN_EVERY_REQUEST: readonly KeyPart["kind"][] = ["ip", "host", "method", "global"];

function keyNeeds(
  alternatives: readonly KeyPart[],
  field: "key" | "tiers.by",
  facts: LogFacts,
): UnmetNeed[] {
  const needs: UnmetNeed[] = [];
  for (const part of alternatives) {
    if (part.kind === "custom") needs.push(functionNeed(part.name, field));
    else if (part.kind === "jwt") needs.push(TOKEN(part.name, field));
    else {
      const unknown = unknownKeyPart(part, facts);
      const code = part.kind === "host" ? "host-not-logged" : CODES[field];
      if (unknown) needs.push(notLogged(code, unknown, field));
    }
    if (IN_EVERY_REQUEST.includes(part.kind)) break;
  }
  return needs;
}

const CODES = { key: "key-not-logged", "tiers.by": "tier-not-logged" } as const;

const TOKEN = (claim: string, field: string): UnmetNeed => ({
  code: "token-not-verified",
  reason: `\`${field}\` reads the claim ${claim} of a token, and replay verifies no tokens.`,
  canBeAbsent: true,
});

function functionNeed(name: string, field: string): UnmetNeed {
  return {
    code: "custom-function",
    reason: `\`${field}\` needs the function ${name} in \`custom\`, and replay calls no functions.`,
    canBeAbsent: true,
  };
}

function costNeeds({ cost, count }: Rule, facts: LogFacts): UnmetNeed[] {
  const needs: UnmetNeed[] = [];
  if (count && !facts.status) {
    // A response always has a status, so it cannot be treated as absent.
    needs.push({ ...notLogged("status-not-logged", UNKNOWN.status, "count"), canBeAbsent: false });
  }
  if (typeof cost === "number") return needs;
  const { before, settle } = cost;
  if (typeof before === "object") {
    if (before.kind === "custom") needs.push(functionNeed(before.name, "cost"));
    else if (!statesHeader(facts, "content-length")) {
      needs.push(notLogged("cost-not-logged", UNKNOWN.bodyBytes, "cost"));
    }
  }
  if (settle?.kind === "custom") needs.push(functionNeed(settle.name, "cost"));
  if (settle?.kind === "header" && !statesResponseHeader(facts, settle.name)) {
    needs.push(notLogged("cost-not-logged", unknownResponseHeader(settle.name), "cost"));
  }
  return needs;
}

// Notes that only the end of a replay shows.

/** @param fate what becomes of such requests in the report */
export function refusedNote(number: number, fate = "count as undecided"): ReportNote {
  const text = `${requestsHave(number)} an unclear host or path, or a path that is too long. The Worker answers with 400 or 414 and reads no rules. Such requests ${fate}.`;
  return { code: "refused-requests", text };
}

export function preflightNote(number: number): ReportNote {
  const text = `${requestsHave(number)} the method OPTIONS. The log does not state the header fields of preflights, so such requests count as CORS preflights, which only rules that name OPTIONS count.`;
  return { code: "assumed-preflights", text };
}

export function withoutAddressNote({ name }: Rule, number: number): ReportNote {
  const text = `${requestsHave(number)} no valid client address in the log. The rule "${name}" does not count such requests.`;
  return { code: "address-not-logged", rule: name, text };
}

export function absentKeyNote({ name }: Rule, part: KeyPart): ReportNote {
  const text = `No request that the rule "${name}" matches has ${keyPartName(part)}, although the log states it.`;
  return { code: "key-never-occurred", rule: name, text };
}

/** Kinds of key that a log can state, and that requests may lack. */
const OPTIONAL: readonly KeyPart["kind"][] = ["header", "cookie", "query", "country", "asn", "ja4"];

/**
 * Returns the parts of a key that no request had, although the log states them. An alternative after one that
 * requests had is left out, because it was not needed.
 *
 * @param seen the parts whose values were used
 */
export function absentKeyParts(
  key: KeyExpression,
  seen: ReadonlySet<KeyPart>,
  facts: LogFacts,
): KeyPart[] {
  if (seen.size === 0) return [];
  return key.flatMap((alternatives) => {
    const firstSeen = alternatives.findIndex((part) => seen.has(part));
    const absent = firstSeen === -1 ? alternatives : alternatives.slice(0, firstSeen);
    return absent.filter((part) => OPTIONAL.includes(part.kind) && !unknownKeyPart(part, facts));
  });
}

function requestsHave(number: number): string {
  return number === 1 ? "1 request has" : `${formatCount(number)} requests have`;
}

/** Returns the notes about facts without which parts of the report are empty. */
export function factNotes({ ip, status }: LogFacts): ReportNote[] {
  const notes: ReportNote[] = [];
  if (!ip) {
    notes.push({
      code: "address-not-logged",
      text: "The log does not state addresses, so clients can be counted only by rule.",
    });
  }
  if (!status) {
    notes.push({
      code: "status-not-logged",
      text: "The log does not state statuses, so it is unknown which denied requests had succeeded.",
    });
  }
  return notes;
}

/** Returns the notes about lines of the logs that were not read. */
export function logNotes(
  { notes, late, broken, lines }: LogProgress,
  isPartial: boolean | undefined,
): ReportNote[] {
  const found: ReportNote[] = notes.map((text) => ({ code: "log", text }));
  if (isPartial) {
    found.push({
      code: "partial",
      text: "The command was interrupted. This report is about the part of the log before that.",
    });
  }
  if (late > 0) {
    found.push({
      code: "late-lines",
      text: `Lines left out, because they came too late to be sorted by their times: ${formatCount(late)} of ${formatCount(lines)}. Raise --max-delay.`,
    });
  }
  if (broken > 0) {
    found.push({
      code: "broken-lines",
      text: `Lines left out, because they could not be read: ${broken} of ${lines}.`,
    });
  }
  return found;
}
