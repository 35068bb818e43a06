import { formatCount, formatDuration } from "../../src/admin/format.ts";
import { formatWindow } from "../../src/config/window.ts";
import type { LogFacts } from "../logs/log-request.ts";
import { cureText, type ReportNote, type UnmetNeed, unmetNeedsOf } from "../logs/needs.ts";
import type { LogRules } from "../replay/log-rules.ts";
import type { RequestedRule } from "./requested-rule.ts";
import { isSliding } from "./rule-text.ts";
import type { Suggestion } from "./suggestion.ts";

/** The smallest number of clients of which 0.1 % is at least one client. */
const ENOUGH_CLIENTS = 1000;

/** Returns the notes about the numbers of a suggestion. */
export function notesAbout(
  requested: RequestedRule,
  suggestion: Suggestion,
  facts: LogFacts,
  reader: LogRules,
): ReportNote[] {
  return [
    ...requestNotes(suggestion),
    ...reader.notes("are left out"),
    ...clientNotes(suggestion),
    ...statusNotes(suggestion, facts),
    ...lengthNotes(requested, suggestion),
    ...slidingNotes(requested, suggestion),
  ];
}

function requestNotes({ requests, match }: Suggestion): ReportNote[] {
  if (requests > 0) return [];
  const text = `No request of the log matches ${match}. There is nothing to suggest.`;
  return [{ code: "no-requests", text }];
}

function clientNotes({ clients, requestsLeftOut }: Suggestion): ReportNote[] {
  const notes: ReportNote[] = [];
  if (clients > 0 && clients < ENOUGH_CLIENTS) {
    const shares = clients < ENOUGH_CLIENTS / 10 ? "1%, 0.1% and 0.01%" : "0.1% and 0.01%";
    const text = `The log has ${formatCount(clients, "client")}, and ${shares} of its clients are less than one client. These limits are the most requests that any client sent. A longer log is more reliable.`;
    notes.push({ code: "few-clients", text });
  }
  if (requestsLeftOut > 0) {
    const text = `The log has more than ${formatCount(clients, "client")}. The numbers are about those that came first: ${formatCount(requestsLeftOut, "request")} of others are left out. Read a shorter time with --from and --to.`;
    notes.push({ code: "too-many-clients", text });
  }
  return notes;
}

function statusNotes({ requests }: Suggestion, facts: LogFacts): ReportNote[] {
  if (facts.has("status") || requests === 0) return [];
  const text =
    "The log does not state statuses, so it is unknown which requests of the loudest clients had succeeded.";
  return [{ code: "status-not-logged", text }];
}

/** A window that is longer than the log may have more requests than the log shows. */
function lengthNotes({ windows }: RequestedRule, { log }: Suggestion): ReportNote[] {
  if (log.from === undefined || log.to === undefined) return [];
  const lengthMs = Date.parse(log.to) - Date.parse(log.from);
  const uncovered = windows.filter(({ windowMs }) => windowMs > lengthMs);
  if (uncovered.length === 0) return [];
  const names = uncovered.map(formatWindow).join(", ");
  const text = `The log covers ${formatDuration(lengthMs)}, which is less than a window of ${names}. A whole window may have more requests.`;
  return [{ code: "short-log", text }];
}

function slidingNotes({ rule }: RequestedRule, { requests }: Suggestion): ReportNote[] {
  if (requests === 0 || !isSliding(rule)) return [];
  const text =
    "Clients send credentials with these requests, so the rule has sliding: true: nobody gets twice as much around the start of a window. These numbers count fixed windows: let weir replay show what the rule denies.";
  return [{ code: "credentials", text }];
}

/** Whether a log suffices for a rule. */
interface LogNeeds {
  /** The facts that the log lacks, with the cures; undefined if it suffices. */
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
  const needs = unmetNeedsOf(rule, facts);
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
