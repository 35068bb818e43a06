import { count } from "../admin/text.ts";
import { fitted, WIDTH } from "../print/fit-text.ts";
import { counted, percent } from "../print/numbers.ts";
import type { Frequent } from "../replay/report.ts";
import type { LoudClient } from "./suggestion.ts";

/** Returns some lines about each client. */
export function loudestText(loudest: readonly LoudClient[]): string {
  return loudest.flatMap(linesOf).join("\n");
}

function linesOf(loud: LoudClient): string[] {
  const { client, claimsToBe, userAgents, paths } = loud;
  const claim = claimsToBe === undefined ? "" : `, claims to be ${claimsToBe}`;
  const details = [numbersOf(loud), frequent("paths", paths), frequent("agents", userAgents)];
  return [
    fitted(client, WIDTH - claim.length) + claim,
    ...details.filter((text) => text !== "").map((text) => `  ${fitted(text, WIDTH - 2)}`),
  ];
}

function numbersOf({ busiest, busiestStart, requests, succeeded }: LoudClient): string {
  const when = `${busiestStart.slice(0, 19).replace("T", " ")}Z`;
  return `${counted(busiest, "request")} from ${when}, ${count(requests)} in all, ${percent(succeeded / requests)} of them succeeded`;
}

function frequent(title: string, texts: readonly Frequent[]): string {
  // Texts that occur once say little, unless there is nothing else.
  const repeated = texts.filter((each) => each.count > 1);
  const shown = repeated.length > 0 ? repeated : texts.slice(0, 1);
  // Each text gets its part of the line, so that a long one does not hide the others.
  const width = Math.floor((WIDTH - title.length - 4) / Math.max(1, shown.length)) - 2;
  const parts = shown.map(({ text, count: times }) => fitted(`${count(times)} × ${text}`, width));
  return parts.length === 0 ? "" : `${title}: ${parts.join(", ")}`;
}
