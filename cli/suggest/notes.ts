import { formatCount, formatDuration } from "../../src/admin/format.ts";
import { formatWindow } from "../../src/config/window.ts";
import type { LogFacts } from "../logs/log-request.ts";
import { cureText, type ReportNote, type UnmetNeed, unmetNeedsOf } from "../logs/needs.ts";
import type {} from "../replay/report.ts";
import type { RequestedRule } from "./requested-rule.ts";
import type { Suggestion } from "./suggestion.ts";

/** Below this number of clients, 0.1 % of them are less than one. */
const ENOUGH_CLIENTS = 1000;

/** Counts of requests that the log states too little about. */
interface UnclearRequests {
  /** Requests that are left out because their address is needed and unknown. */
  readonly withoutAddress: number;
  /** OPTIONS requests that count as preflights because the log does not show more. */
  readonly assumedPreflights: number;
  /** Requests that the Worker answers with 400 or 414 before it reads the rules. */
  readonly refused: number;
}

/** Returns what a reader must know about the numbers. */
export function notesAbout(
  requested: RequestedRule,
  suggestion: Suggestion,
  facts: LogFacts,
  unclear: UnclearRequests,
): ReportNote[] {
  return [
    ...requestNotes(suggestion, unclear),
    ...clientNotes(suggestion),
    ...botNotes(requested, facts),
    ...statusNotes(suggestion, facts),
    ...lengthNotes(requested, suggestion),
    ...ruleNotes(requested),
  ];
}

function requestNotes(
  { requests, match, bots }: Suggestion,
  { withoutAddress, assumedPreflights, refused }: UnclearRequests,
): ReportNote[] {
  const notes: ReportNote[] = [];
  if (requests === 0) {
    const none =
      bots.length > 0
        ? "Only verified bots sent requests that match"
        : "No request of the log matches";
    const text = `${none} ${match}. There is nothing to suggest.`;
    notes.push({ code: "no-requests", text });
  }
  if (refused > 0) {
    const text = `${requestsHave(refused)} an unclear host or path, or a path that is too long. The Worker answers with 400 or 414 and reads no rules. Such requests are left out.`;
    notes.push({ code: "refused-requests", text });
  }
  if (withoutAddress > 0) {
    const text = `${requestsHave(withoutAddress)} no valid client address in the log. Such requests are left out.`;
    notes.push({ code: "address-not-logged", text });
  }
  if (assumedPreflights > 0) {
    const text = `${requestsHave(assumedPreflights)} the method OPTIONS. The log does not state the header fields of preflights, so such requests count as preflights of browsers, which a rule counts only if its match names OPTIONS.`;
    notes.push({ code: "assumed-preflights", text });
  }
  return notes;
}

function requestsHave(number: number): string {
  return number === 1 ? "1 request has" : `${formatCount(number)} requests have`;
}

function clientNotes({ clients, isEstimate }: Suggestion): ReportNote[] {
  const notes: ReportNote[] = [];
  if (clients > 0 && clients < ENOUGH_CLIENTS) {
    const shares = clients < ENOUGH_CLIENTS / 10 ? "1%, 0.1% and 0.01%" : "0.1% and 0.01%";
    const text = `The log has ${formatCount(clients, "client")}, and ${shares} of its clients are less than one client. These limits are the most requests that any client sent. A longer log is more reliable.`;
    notes.push({ code: "few-clients", text });
  }
  if (isEstimate) {
    const text =
      "There are too many clients to count all of them. The numbers of clients and the limits come from a uniform sample of at least 250,000 clients. The most requests in a window are exact.";
    notes.push({ code: "estimate", text });
  }
  return notes;
}

function botNotes({ rule }: RequestedRule, { bots }: LogFacts): ReportNote[] {
  if (!bots) {
    const text =
      "The log does not state which clients are verified bots, so they are part of the clients.";
    return [{ code: "bots-not-logged", text }];
  }
  if (rule.match.bots === undefined) return [];
  const text = "The match names verified bots, so they are not shown apart.";
  return [{ code: "bots-matched", text }];
}

function statusNotes({ requests }: Suggestion, { status }: LogFacts): ReportNote[] {
  if (status || requests === 0) return [];
  const text =
    "The log does not state statuses, so it is unknown which requests of the loudest clients had succeeded.";
  return [{ code: "status-not-logged", text }];
}

/** A window that the log does not cover can have more requests than the log shows. */
function lengthNotes({ windows }: RequestedRule, { log }: Suggestion): ReportNote[] {
  if (log.from === undefined || log.to === undefined) return [];
  const lengthMs = Date.parse(log.to) - Date.parse(log.from);
  const uncovered = windows.filter(({ windowMs }) => windowMs > lengthMs);
  if (uncovered.length === 0) return [];
  const names = uncovered.map(formatWindow).join(", ");
  const text = `The log covers ${formatDuration(lengthMs)}, which is less than a window of ${names}. A whole window may have more requests.`;
  return [{ code: "short-log", text }];
}

/** Fields of an existing rule that change which requests count, or how much. */
function ruleNotes({ rule, input, name }: RequestedRule): ReportNote[] {
  if (input) return [];
  const { tiers, exempt, cost, count: counts, spread } = rule;
  const ignored = [
    tiers && "tiers",
    exempt && "exempt",
    cost !== 1 && "cost",
    counts && "count",
    spread && 'start: "spread"',
  ].filter((field) => typeof field === "string");
  if (ignored.length === 0) return [];
  const text = `Each request of the rule "${name}" counts as one, in windows that are the same for all clients. These fields are left out: ${ignored.join(", ")}.`;
  return [{ code: "fields-left-out", rule: name, text }];
}

/** Whether a log suffices for a rule. */
interface LogNeeds {
  /** What the log lacks, with the cures; undefined if it suffices. */
  readonly refusal: string | undefined;
  /** Notes about values that count as absent. */
  readonly notes: readonly ReportNote[];
}

/** Compares what a log states with what the match and the key of a rule need. */
export function logNeeds(
  { rule }: RequestedRule,
  facts: LogFacts,
  missingAsAbsent: boolean,
): LogNeeds {
  const needs = unmetNeedsOf({ ...rule, tiers: undefined, cost: 1, count: undefined }, facts);
  const refused = needs.filter(({ canBeAbsent }) => !missingAsAbsent || !canBeAbsent);
  return {
    refusal: refused.length > 0 ? refused.map(refusalOf).join("\n") : undefined,
    notes: needs.map(({ reason }) => ({
      code: "treated-as-absent",
      text: `${reason} All requests count as if they did not have it.`,
    })),
  };
}

function refusalOf(need: UnmetNeed): string {
  const cure = cureText(need);
  if (cure === undefined) return need.reason;
  return `${need.reason} ${cure.charAt(0).toUpperCase()}${cure.slice(1)}.`;
}
