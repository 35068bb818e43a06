import { formatCount, formatPercent, formatTime } from "../../src/admin/format.ts";
import { styled, WIDTH, wrapped } from "../print/text.ts";
import {
  brokenLinesText,
  joined,
  type ReportTable,
  textNotes,
  textTable,
} from "../replay/report-parts.ts";
import type { Suggestion } from "./suggestion.ts";

/** Returns a suggestion as a report for a terminal, at most 120 columns wide, except for the rule. */
export function suggestionText(suggestion: Suggestion): string {
  const { match, key, rule, notes, log } = suggestion;
  const title = wrapped(`Limits for ${match}, counted by ${key}`, WIDTH);
  return joined([
    [...title.map((line) => styled("bold", line)), ...wrapped(numbersOf(suggestion), WIDTH)].join(
      "\n",
    ),
    textNotes(notes.map(({ text }) => text)),
    textTable(limitTable(suggestion)),
    textTable(loudestTable(suggestion)),
    rule === undefined ? "" : `${styled("bold", "The rule, ready to paste")}\n${rule}`,
    brokenLinesText(log),
  ]);
}

function numbersOf({ requests, clients, log: { lines, from, to } }: Suggestion): string {
  const period =
    from && to ? `, from ${formatTime(Date.parse(from))} to ${formatTime(Date.parse(to))}` : "";
  return `${formatCount(requests, "request")} of ${formatCount(clients, "client")}, in ${formatCount(lines, "line")}${period}`;
}

function limitTable({ windows }: Suggestion): ReportTable {
  const limits = windows.flatMap((each) =>
    each.limits.map(({ share, limit, clientsDenied, requestsDenied }) => [
      ...[each.window, shareText(share)],
      ...[limit, clientsDenied, requestsDenied],
    ]),
  );
  return {
    title: "The lowest limits that deny at most a share of the clients, at least once",
    headings: ["Window", "Share", "Limit", "Clients denied", "Requests denied"],
    rows: limits,
  };
}

/** Formats the share of a limit: 0.001 → `0.1%`. */
function shareText(share: number): string {
  return `${Number((share * 100).toPrecision(12))}%`;
}

function loudestTable({ loudest, windows }: Suggestion): ReportTable {
  return {
    title: `The loudest clients, by their busiest window of ${windows[0]?.window ?? ""}`,
    headings: ["Client", "Most", "From", "Requests", "Succeeded"],
    rows: loudest.map(({ client, busiest, busiestStart, requests, succeeded }) => [
      { code: client },
      busiest,
      formatTime(Date.parse(busiestStart)),
      requests,
      formatPercent(succeeded / requests),
    ]),
  };
}
