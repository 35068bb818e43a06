import type { Fault } from "./fault.ts";
import type { Observed, Seen } from "./scenario.ts";

/** A fault's row in the table. */
export interface Row {
  readonly does: string;
  /** The cause in the log, or "–" if requests were decided. */
  readonly cause: string;
  readonly open: string;
  readonly closed: string;
  readonly local: string;
  /** The longest wait of an undecided request before the breaker opened, in milliseconds. */
  readonly delayMs: number;
  /** The time that a decision adds while the breaker is open, in milliseconds. */
  readonly addedMs: number;
  readonly recoveredMs: number;
}

/** Returns the row for the observed effects. */
export function rowOf({ does }: Pick<Fault<never>, "does">, observed: Observed): Row {
  const { atFirst, then, log, addedMs, recoveredMs } = observed;
  return {
    does,
    cause: /"weir":"undecided","cause":"([\w-]+)"/.exec(log.join("\n"))?.[1] ?? "–",
    open: wordOf([atFirst.open, ...then.open]),
    closed: wordOf([atFirst.closed, atFirst.closedOverLocal, ...then.closed]),
    local: wordOf([atFirst.local, atFirst.localOverOpen, ...then.local]),
    delayMs: Math.max(...Object.values(atFirst).map(({ ms }) => ms)),
    addedMs,
    recoveredMs: recoveredMs ?? Number.POSITIVE_INFINITY,
  };
}

/**
 * Returns the word that the table shows for the answers to the requests of rules with the same
 * `onError`.
 */
function wordOf(answers: readonly Seen[]): string {
  if (answers.every(({ isDecided }) => isDecided)) return "decided";
  const statuses = new Set(answers.map(({ status }) => status));
  const is = (...expected: number[]) =>
    statuses.size === expected.length && expected.every((status) => statuses.has(status));
  if (is(200)) return "passes";
  if (is(503)) return "503";
  if (is(200, 429)) return "counted locally";
  return `unexpected: ${[...statuses].join(", ")}`;
}
