import { counted, countText } from "../../src/admin/dashboard/format.ts";
import type { LogSummary } from "../logs/log-summary.ts";
import { type Html, html } from "./markup.ts";
import { notice } from "./notices.ts";
import { table } from "./table.ts";
import { filesText, rangeText, sentence, shown } from "./texts.ts";

/** A name and its value, in a list of facts. */
export type Fact = readonly [name: string, value: string | Html];

/** What was read from the logs, and what could not be read. */
export function logCard(log: LogSummary, more: readonly Fact[]): Html {
  const { requests, lines } = log;
  const skipped = [
    ["broken", log.broken, "could not be read"],
    ["late", log.late, "too far out of order"],
    ["outside", log.outside, "outside the chosen range of time"],
    ["ignored", log.ignored, "no requests"],
  ] as const;
  const all: Fact[] = [
    ...more,
    [log.files.length === 1 ? "Log" : "Logs", filesText(log.files, 10)],
    ["Format", [...new Set(log.formats)].map((format) => shown(format)).join(", ")],
    ["Time (UTC)", log.from && log.to ? rangeText(log.from, log.to) : "no request"],
    ["Requests read", `${countText(requests)} of ${counted(lines, "line")}`],
    ...skipped
      .filter(([, count]) => count > 0)
      .map(([, count, reason]): Fact => [`Lines ${reason}`, countText(count)]),
  ];
  return html`<div class="card">${facts(all)}</div>
${log.brokenLines.length > 0 && brokenLines(log)}`;
}

/** A list of names and values. */
export function facts(all: readonly Fact[]): Html {
  return html`<dl class="facts">${all.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Warns if so many lines were not replayed that the numbers may mislead. */
export function lossNotice({ lines, requests, broken, late }: LogSummary): Html | undefined {
  if (broken + late === 0) return undefined;
  const kind = broken + late > (requests + broken + late) / 100 ? "bad" : "info";
  const parts = [
    broken > 0 && `${counted(broken, "line")} could not be read`,
    late > 0 && `${counted(late, "line")} ${late === 1 ? "was" : "were"} too far out of order`,
  ].filter((part) => part !== false);
  return notice(
    kind,
    html`<p>Of ${counted(lines, "line")}, ${parts.join(", and ")}. <a href="#log">The log</a></p>`,
  );
}

function brokenLines({ brokenLines: lines, broken }: LogSummary): Html {
  const rows = lines.map(({ file, line, reason, text }) => {
    return html`<tr><th scope="row">${shown(file)}:${line}</th><td>${sentence(reason)}</td><td><code>${shown(text)}</code></td></tr>`;
  });
  const caption =
    broken > lines.length
      ? `The first ${countText(lines.length)} of ${countText(broken)} lines that could not be read`
      : "Lines that could not be read";
  const columns = [{ label: "Line" }, { label: "Reason" }, { label: "Its start" }];
  return html`<div class="card">${table({ caption, showsCaption: true, columns }, rows)}</div>
`;
}
