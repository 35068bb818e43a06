import { plural } from "../doctor/finding.ts";
import type { Logs } from "../logs/open-logs.ts";
import type { ReplayNote } from "./replay-engine.ts";

/** Returns the notes about what the logs do not state, and about lines that were not replayed. */
export function logNotes(
  { facts, progress }: Pick<Logs, "facts" | "progress">,
  isPartial: boolean | undefined,
): ReplayNote[] {
  const { notes, late, broken, lines } = progress;
  const found: ReplayNote[] = notes.map((text) => ({ code: "log", text }));
  if (!facts.ip) {
    found.push({
      code: "address-not-logged",
      text: "The log does not state addresses, so clients can be counted only by rule.",
    });
  }
  if (!facts.status) {
    found.push({
      code: "status-not-logged",
      text: "The log does not state statuses, so it is unknown which denied requests had succeeded.",
    });
  }
  if (isPartial) {
    found.push({
      code: "partial",
      text: "The replay was interrupted. This report is about the part of the log before that.",
    });
  }
  if (late > 0) {
    found.push({
      code: "late-lines",
      text: `${plural(late, "line")} of ${lines} came too late to be replayed in the order of their times. Raise --max-delay.`,
    });
  }
  if (broken > 0) {
    found.push({
      code: "broken-lines",
      text: `${plural(broken, "line")} of ${lines} could not be read. They are not replayed.`,
    });
  }
  return found;
}
