/** An isolate logs outages at most once in this many milliseconds. */
const OUTAGE_INTERVAL_MS = 10_000;
/** The minimum time between two logged failures about the same key, response or rule, in milliseconds. */
const FAILURE_INTERVAL_MS = 1000;
/** The maximum number of entries in `lastFailures`. */
const MAX_SUBJECTS = 1000;

/** Writes a line of JSON. The lines contain no keys, addresses or secrets. */
export function logLine(
  level: "log" | "error",
  event: string,
  fields: Record<string, unknown>,
): void {
  console[level](JSON.stringify({ weir: event, ...fields }));
}

/** The events and tasks whose failures an isolate logs at most once in ten seconds. */
export type OutageEvent =
  | "undecided"
  | "shadow-undecided"
  | "mark-undecided"
  | "hand-over"
  | "load-overrides";

const lastOutages = new Map<OutageEvent, number>();

/** Whether to log an outage now. If so, records the time. */
export function isOutageDue(event: OutageEvent): boolean {
  return isDue(lastOutages, event, OUTAGE_INTERVAL_MS);
}

/** The times at which this isolate last logged a failure, by the key, response or rule. */
const lastFailures = new Map<string, number>();

/** Whether to log a failure about a key, response or rule now. If so, records the time. */
export function isFailureDue(subject: string): boolean {
  // A program can create configurations at run time, so the number of names is bounded here.
  if (lastFailures.size >= MAX_SUBJECTS && !lastFailures.has(subject)) lastFailures.clear();
  return isDue(lastFailures, subject, FAILURE_INTERVAL_MS);
}

function isDue<Subject>(lastTimes: Map<Subject, number>, subject: Subject, intervalMs: number) {
  const now = Date.now();
  const last = lastTimes.get(subject);
  // A time in the future does not count as recent, because it shows that the clock was set back.
  if (last !== undefined && last <= now && now - last < intervalMs) return false;
  lastTimes.set(subject, now);
  return true;
}
