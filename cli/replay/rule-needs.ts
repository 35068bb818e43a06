import type { Conditions } from "../../src/config/conditions.ts";
import type { KeyPart } from "../../src/config/key-expression.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { LogFacts } from "../logs/log-request.ts";
import {
  statesHeader,
  statesResponseHeader,
  UNKNOWN,
  type UnknownFact,
  unknownHeader,
  unknownKeyPart,
  unknownResponseHeader,
} from "./known-facts.ts";

/** The stable names of the reasons why a log does not suffice for a rule. */
export type NeedCode =
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
