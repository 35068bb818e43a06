import { countText, exactTime } from "../../src/admin/dashboard/format.ts";
import { printable } from "../doctor/finding.ts";

/** The maximum length of a text of a log or a configuration in a report, in characters. */
const MAX_LENGTH = 200;

/** Returns a text of a log or a configuration without invisible characters, and shortened if it is very long. */
export function shown(text: string): string {
  const clean = printable(text);
  return clean.length > MAX_LENGTH ? `${clean.slice(0, MAX_LENGTH)}…` : clean;
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
