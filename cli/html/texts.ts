import { countText, exactTime } from "../../src/admin/dashboard/format.ts";
import { printable } from "../doctor/finding.ts";

/** The maximum length of a text of a log or a configuration in a report, in characters. */
const MAX_LENGTH = 200;
/** The maximum length of a sentence of Weir, which may quote such texts, in characters. */
const MAX_SENTENCE_LENGTH = 1000;

/** Returns a text of a log or a configuration without invisible characters, and shortened if it is very long. */
export function shown(text: string, maxLength = MAX_LENGTH): string {
  const clean = printable(text);
  return clean.length > maxLength ? `${clean.slice(0, maxLength)}…` : clean;
}

/** Returns a number that is undefined if the log does not state it. */
export function knownText(value: number | undefined): string {
  return value === undefined ? "unknown" : countText(value);
}

/** Returns the text of a note in the same way. */
export function sentence(text: string): string {
  return shown(text, MAX_SENTENCE_LENGTH);
}

/** Returns the names of the first files and the number of the others. */
export function filesText(files: readonly string[], count = 3): string {
  const listed = files.slice(0, count).map((file) => shown(file));
  const rest = files.length - listed.length;
  return rest > 0 ? `${listed.join(", ")} and ${countText(rest)} more` : listed.join(", ");
}

/** Returns a time of a report, such as `2026-11-22 17:04:20`, without its zone: all times are UTC. */
export function timeText(iso: string): string {
  return exactTime(Date.parse(iso)).replace(" UTC", "");
}

/** Returns `2026-11-22 17:04:00 – 17:05:00`, with the second date if it is another day. */
export function rangeText(from: string, to: string): string {
  const [start, end] = [timeText(from), timeText(to)];
  const isSameDay = start.slice(0, 10) === end.slice(0, 10);
  return `${start} – ${isSameDay ? end.slice(11) : end}`;
}

/** Returns a number that may be an estimate, such as `about 12,000`. */
export function estimateText(count: number, isEstimate: boolean): string {
  return `${isEstimate ? "about " : ""}${countText(count)}`;
}

/** Returns a small share of clients, such as `0.01%`. */
export function shareText(share: number): string {
  return `${Number((100 * share).toPrecision(3))}%`;
}
