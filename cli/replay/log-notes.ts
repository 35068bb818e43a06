import { plural } from "../doctor/finding.ts";
import type { LogProgress } from "../logs/log-progress.ts";
import type { ReplayNote } from "./replay-engine.ts";

/** Returns the notes about lines of the logs that were not replayed. */
export function logNotes(
  { notes, late, broken, lines }: LogProgress,
  isPartial: boolean | undefined,
): ReplayNote[] {
  const found: ReplayNote[] = notes.map((text) => ({ code: "log", text }));
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
