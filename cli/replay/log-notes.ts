import type { LogProgress } from "../logs/log-progress.ts";
import type { LogFacts } from "../logs/log-request.ts";
import type { ReplayNote } from "./replay-engine.ts";

/** Returns the notes about facts without which parts of the report are empty. */
export function factNotes({ ip, status }: LogFacts): ReplayNote[] {
  const notes: ReplayNote[] = [];
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
): ReplayNote[] {
  const found: ReplayNote[] = notes.map((text) => ({ code: "log", text }));
  if (isPartial) {
    found.push({
      code: "partial",
      text: "The command was interrupted. This report is about the part of the log before that.",
    });
  }
  if (late > 0) {
    found.push({
      code: "late-lines",
      text: `Lines left out, because they came too late to be sorted by their times: ${late} of ${lines}. Raise --max-delay.`,
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
