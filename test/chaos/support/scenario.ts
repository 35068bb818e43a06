import { setTimeout as delay } from "node:timers/promises";
import { FAILURES_TO_OPEN } from "../../../src/stores/breaker.ts";
import { type Answer, send } from "../../node/support/client.ts";
import { besideControl } from "../../node/support/control.ts";
import { PATIENCE } from "../../patience.ts";
import type { Fault } from "./fault.ts";
import { LIMIT, PATHS } from "./rules.ts";

/** A newly started isolate, and the environment in which its store can fail. */
export interface Setting<Environment> {
  readonly environment: Environment;
  readonly url: URL;
  /** The lines logged so far. */
  logs(): readonly string[];
}

/** One answer, as a client sees it. */
export interface Seen {
  readonly status: number;
  readonly isDecided: boolean;
  readonly ms: number;
}

/** The effects of a fault that can be observed from outside. */
export interface Observed {
  readonly before: Seen[];
  /** The answers to the requests that open the breaker: one request for each path, all at once. */
  readonly atFirst: Record<"open" | "closed" | "local" | "closedOverLocal" | "localOverOpen", Seen>;
  /**
   * The time of the slowest request that no rule matches, among those sent while the breaker opens, in milliseconds.
   */
  readonly controlMs: number;
  /** The answers while the breaker is open. */
  readonly then: Record<"open" | "closed" | "local", Seen[]>;
  /**
   * The time that a decision adds to a request while the breaker is open. It is the difference of
   * two medians, in milliseconds.
   */
  readonly addedMs: number;
  /** The median time of a request that no rule matches while the breaker is open. */
  readonly freeMs: number;
  /**
   * The time from the end of the fault to the next decision, in milliseconds; undefined if it is
   * longer than 30 s.
   */
  readonly recoveredMs: number | undefined;
  /** The number of admitted requests, of several that one client sends at once after the recovery. */
  readonly admittedAfter: number;
  /** The number of requests after the recovery that were decided. */
  readonly sentAfter: number;
  readonly log: string[];
}

const ROUNDS = 40;
const RECOVERY_MS = 30_000;
/** If no log line arrives for this time, all lines have arrived. */
const QUIET_MS = 200;
let clients = 0;

/** Causes a fault, ends it, and observes its effects, with new clients for each fault. */
export async function observe<Environment>(
  { environment, url, logs }: Setting<Environment>,
  fault: Fault<Environment>,
): Promise<Observed> {
  // The first request of an isolate is slower than later requests, and Redis may not have the
  // script yet.
  await recovery(url);
  const logged = logs().length;
  const client = newClient();
  const before = await Promise.all([
    see(url, PATHS.open, client),
    see(url, PATHS.closed, client),
    see(url, PATHS.local, client),
  ]);
  let isOver = false;
  async function end(): Promise<void> {
    if (isOver) return;
    isOver = true;
    await fault.end(environment);
  }
  try {
    await fault.begin(environment);
    const { result: first, controlMs } = await besideControl(url, PATHS.free, () =>
      Promise.all(
        [PATHS.open, PATHS.closed, PATHS.local, PATHS.closedOverLocal, PATHS.localOverOpen]
          .slice(0, FAILURES_TO_OPEN)
          .map((path) => see(url, path, newClient())),
      ),
    );
    const [open, closed, local, closedOverLocal, localOverOpen] = first as [
      Seen,
      Seen,
      Seen,
      Seen,
      Seen,
    ];
    const { addedMs, freeMs, ...then } = await whileOpen(url);
    await end();
    const recoveredMs = await recovery(url);
    const { admitted, sent } = await burst(url);
    return {
      before,
      atFirst: { open, closed, local, closedOverLocal, localOverOpen },
      controlMs,
      then,
      addedMs,
      freeMs,
      recoveredMs,
      admittedAfter: admitted,
      sentAfter: sent,
      log: await settled(() => faultsIn(logs().slice(logged)), fault.cause !== undefined),
    };
  } finally {
    await end();
  }
}

/** Returns the lines that are not about denied requests. */
function faultsIn(lines: readonly string[]): string[] {
  return lines.filter((line) => !line.includes('"weir":"denied'));
}

/**
 * Sends requests one after the other. After each of them, it sends a request that no rule matches,
 * to compare the times.
 */
async function whileOpen(url: URL) {
  const seen: Record<"open" | "closed" | "local", Seen[]> = { open: [], closed: [], local: [] };
  const [limited, free]: [number[], number[]] = [[], []];
  // All requests come from one client, so the `local` rule admits only two of them in this isolate.
  const client = newClient();
  for (let round = 0; round < ROUNDS; round++) {
    const kind = (["open", "closed", "local"] as const)[round % 3] as "open";
    const answer = await see(url, PATHS[kind], client);
    seen[kind].push(answer);
    limited.push(answer.ms);
    free.push((await see(url, PATHS.free, client)).ms);
  }
  const freeMs = median(free);
  return { ...seen, addedMs: median(limited) - freeMs, freeMs };
}

async function recovery(url: URL): Promise<number | undefined> {
  const endedAt = performance.now();
  const client = newClient();
  while (performance.now() - endedAt < RECOVERY_MS) {
    const { isDecided } = await see(url, PATHS.closed, client);
    if (isDecided) return performance.now() - endedAt;
    await delay(50);
  }
  return undefined;
}

/** Sends one and a half times as many requests as the limit allows, at the same time. */
async function burst(url: URL): Promise<{ admitted: number; sent: number }> {
  const client = newClient();
  const sent = LIMIT * 1.5;
  const answers = await Promise.all(
    Array.from({ length: sent }, () => see(url, PATHS.closed, client)),
  );
  const decided = answers.filter(({ isDecided }) => isDecided);
  return { admitted: decided.filter(({ status }) => status === 200).length, sent: decided.length };
}

async function see(url: URL, path: string, client: string): Promise<Seen> {
  const sentAt = performance.now();
  const { status, headers }: Answer = await send(url, path, {
    headers: { "CF-Connecting-IP": client },
  });
  const isDecided = headers.ratelimit !== undefined;
  return { status, isDecided, ms: performance.now() - sentAt };
}

function newClient(): string {
  clients += 1;
  return `198.18.${(process.pid % 100) + (clients >>> 8)}.${clients & 255}`;
}

/**
 * Waits until no more log lines arrive, because lines arrive shortly after the answers. Returns all
 * lines.
 *
 * @param wasOpen whether the breaker was open, so that a line must tell that it has closed
 */
async function settled(read: () => readonly string[], wasOpen: boolean): Promise<string[]> {
  const isComplete = (lines: readonly string[]) =>
    !wasOpen || lines.some((line) => line.includes('"closed"'));
  const waitingSince = performance.now();
  let lines = read();
  for (;;) {
    await delay(QUIET_MS);
    const more = read();
    const isQuiet = more.length === lines.length && isComplete(more);
    if (isQuiet || performance.now() - waitingSince > PATIENCE.timeout) return [...more];
    lines = more;
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}
