import type { Fault } from "./fault.ts";
import type { Observed, Seen } from "./scenario.ts";

/** A fault's line in the table. */
export type Row = {
  does: string;
  /** As the log has it, or "–" where requests were decided. */
  cause: string;
  open: string;
  closed: string;
  local: string;
  /** What an undecided request waited at most before the breaker opened, in milliseconds. */
  delayMs: number;
  /** What a request waited more at the median while it was open, in milliseconds. */
  addedMs: number;
  recoveredMs: number;
};

/** What has been observed, in the words of the table. */
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

/** What became of requests with one `onError`. */
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
