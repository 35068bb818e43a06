import { formatCount } from "../../src/admin/format.ts";
import type { ComputedCost } from "../../src/config/cost.ts";
import type { KeyPart } from "../../src/config/key.ts";
import type { Conditions } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { LogFacts } from "./log-request.ts";
import type { LogCounts } from "./progress.ts";

/** A remark for the reader of a report. */
export interface ReportNote {
  /** A stable name, such as `not-logged`. */
  readonly code: string;
  /** The rule that the note is about; undefined for the whole report. */
  readonly rule?: string;
  /** An assumption or an omission, its reason, and how to avoid it. */
  readonly text: string;
}

/** Returns the name of the fact for a header field of requests. */
function headerFact(name: string): string {
  return name === "host" ? name : `header:${name}`;
}

/** Whether the log states a header field of requests. */
export function statesHeader(facts: LogFacts, name: string): boolean {
  return facts.has(headerFact(name));
}

/** Whether the log shows which OPTIONS requests are preflights of browsers. */
export function showsPreflights(facts: LogFacts): boolean {
  return facts.has("header:origin") && facts.has("header:access-control-request-method");
}

/** Returns the name of the fact from which a part of a key gets its value; undefined if no log needs to state it. */
function factOf(part: KeyPart): string | undefined {
  switch (part.kind) {
    case "ip":
    case "host":
    case "country":
    case "asn":
    case "ja4":
      return part.kind;
    case "header":
      return headerFact(part.name);
    case "cookie":
      return "header:cookie";
    default:
      return undefined;
  }
}

const NAMES: Readonly<Record<string, string>> = {
  ip: "the client's address",
  host: "the host",
  status: "the response's status",
  country: "the client's country",
  asn: "the client's AS number",
  bot: "whether the client is a verified bot",
  ja4: "the client's JA4 fingerprint",
};

/** A fact that a rule needs and a replay lacks. */
export interface UnmetNeed {
  /** A stable name for the reason of the omission. */
  readonly code:
    | "not-logged"
    | "custom-function"
    | "token-not-verified"
    | "programs-only"
    | "concurrent-left-out";
  /** The missing fact and the field of the rule that needs it, as a sentence. */
  readonly reason: string;
  /** The option that supplies the fact; undefined if there is none. */
  readonly cure?: string | undefined;
  /** Whether requests can lack the fact, so that it may count as absent in each request. */
  readonly canBeAbsent: boolean;
}

/** Returns the facts that a rule needs and the log lacks. With an empty list, the rule can be replayed. */
export function unmetNeedsOf(rule: Rule, facts: LogFacts): UnmetNeed[] {
  if (rule.for === "programs") return [PROGRAMS_ONLY];
  const { match, key, tiers, count, cost } = rule;
  const windows = [rule.windows, ...(tiers?.windows.values() ?? [])].flat();
  if (!facts.has("duration") && windows.every(({ concurrent }) => concurrent)) {
    return [CONCURRENT_ONLY];
  }
  const needs = [
    ...conditionNeeds(match, "match"),
    ...(match.except ? conditionNeeds(match.except, "match.except") : []),
    ...key.flatMap((alternatives) => keyNeeds(alternatives, "key")),
    ...(tiers?.by ?? []).flatMap((alternatives) => keyNeeds(alternatives, "tiers.by")),
    ...(count ? [{ fact: "status", field: "count" }] : []),
    ...(typeof cost === "object" ? [cost.before, cost.settle] : []).map(costNeed),
  ];
  return needs.flatMap((need) => {
    if (need === undefined || "code" in need) return need ?? [];
    return facts.has(need.fact) ? [] : notLogged(need);
  });
}

/** Returns the options that make up for a missing fact, as the end of a sentence; undefined if there are none. */
export function cureText({ cure, canBeAbsent }: UnmetNeed): string | undefined {
  const options = [cure, canBeAbsent && "--missing-as-absent"].filter(Boolean);
  return options.length === 0 ? undefined : `add ${options.join(" or ")}`;
}

/** A fact that a field of a rule needs. */
interface NeededFact {
  readonly fact: string;
  readonly field: string;
}

const PROGRAMS_ONLY: UnmetNeed = {
  code: "programs-only",
  reason: "It counts only calls of programs, which no log has.",
  canBeAbsent: false,
};

const CONCURRENT_ONLY: UnmetNeed = {
  code: "concurrent-left-out",
  reason: "Its only limit is `concurrent`, and the log does not state how long requests took.",
  cure: "--map duration=FIELD (for JSON lines)",
  canBeAbsent: false,
};

function notLogged({ fact, field }: NeededFact): UnmetNeed {
  const [name, of] = fact.startsWith("response-") ? [fact.slice(9), " of responses"] : [fact, ""];
  const known = NAMES[fact] ?? `the header field ${name.slice("header:".length)}${of}`;
  return {
    code: "not-logged",
    reason: `The log does not state ${known}, which \`${field}\` needs.`,
    cure: fact === "host" ? "--host NAME" : `--map ${fact}=FIELD (for JSON lines)`,
    // A response always has a status.
    canBeAbsent: fact !== "status",
  };
}

/** The facts that conditions need. */
const OF_CONDITIONS = {
  hosts: "host",
  ips: "ip",
  countries: "country",
  asns: "asn",
  bots: "bot",
} as const;

function conditionNeeds(conditions: Conditions, path: string): NeededFact[] {
  const names = Object.keys(OF_CONDITIONS) as (keyof typeof OF_CONDITIONS)[];
  return [
    ...(conditions.headers ?? []).map(({ name }) => ({
      fact: headerFact(name),
      field: `${path}.headers`,
    })),
    ...names
      .filter((name) => conditions[name] !== undefined)
      .map((name) => ({ fact: OF_CONDITIONS[name], field: `${path}.${name}` })),
  ];
}

/** Kinds of key that every request has. Alternatives after such a kind are never used. */
const IN_EVERY_REQUEST: readonly KeyPart["kind"][] = ["ip", "host", "method", "global"];

function keyNeeds(alternatives: readonly KeyPart[], field: string): (NeededFact | UnmetNeed)[] {
  const last = alternatives.findIndex(({ kind }) => IN_EVERY_REQUEST.includes(kind));
  const used = last === -1 ? alternatives : alternatives.slice(0, last + 1);
  return used.flatMap((part) => {
    if (part.kind === "custom") return functionNeed(part.name, field);
    if (part.kind === "jwt") return tokenNeed(part.name, field);
    const fact = factOf(part);
    return fact === undefined ? [] : { fact, field };
  });
}

function tokenNeed(claim: string, field: string): UnmetNeed {
  return {
    code: "token-not-verified",
    reason: `\`${field}\` reads the claim ${claim} of a token, and replay verifies no tokens.`,
    canBeAbsent: true,
  };
}

function functionNeed(name: string, field: string): UnmetNeed {
  return {
    code: "custom-function",
    reason: `\`${field}\` needs the function ${name} in \`custom\`, and replay calls no functions.`,
    canBeAbsent: true,
  };
}

function costNeed(
  source: ComputedCost["before"] | ComputedCost["settle"],
): NeededFact | UnmetNeed | undefined {
  if (typeof source !== "object") return undefined;
  if (source.kind === "custom") return functionNeed(source.name, "cost");
  const fact = source.kind === "body" ? "header:content-length" : `response-header:${source.name}`;
  return { fact, field: "cost" };
}

// Notes that only the end of a replay shows.

/** @param fate the report's treatment of these requests, as the end of a sentence */
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

export function requestsHave(number: number): string {
  return number === 1 ? "1 request has" : `${formatCount(number)} requests have`;
}

/** Returns the notes about missing facts that leave parts of the report empty. */
export function factNotes(facts: LogFacts): ReportNote[] {
  const addresses = "The log does not state addresses, so clients can be counted only by rule.";
  const statuses =
    "The log does not state statuses, so it is unknown which denied requests had succeeded.";
  return [
    ...(facts.has("ip") ? [] : [{ code: "address-not-logged", text: addresses }]),
    ...(facts.has("status") ? [] : [{ code: "status-not-logged", text: statuses }]),
  ];
}

/** Returns the notes about lines of the logs that were not read. */
export function logNotes(
  { notes, broken, lines }: LogCounts,
  isPartial: boolean | undefined,
): ReportNote[] {
  const partial =
    "The command was interrupted. This report is about the part of the log before that.";
  const unread = `Lines left out, because they could not be read: ${broken} of ${lines}.`;
  return [
    ...notes.map((text) => ({ code: "log", text })),
    ...(isPartial ? [{ code: "partial", text: partial }] : []),
    ...(broken > 0 ? [{ code: "broken-lines", text: unread }] : []),
  ];
}
