import { expect, vi } from "vitest";
import { FAILURES_TO_OPEN, PAUSE_MS } from "../../../src/stores/breaker.ts";
import { CHECKS_PER_DEADLINE } from "../../../src/stores/deadline.ts";
import { type Answer, send } from "../../node/support/client.ts";
import { PATIENCE } from "../../patience.ts";
import type { Fault } from "./fault.ts";
import type { FaultyWorker } from "./faulty-worker.ts";
import { LIMIT, PATHS, TIMEOUT_MS } from "./rules.ts";

/** A Worker, and the environment in which its store can fail. */
export interface Setting<Environment> {
  readonly environment: Environment;
  readonly worker: FaultyWorker;
}

/** One answer, as a client sees it, and its time by the clock of the Worker. */
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
  /** The answers while the breaker is open. */
  readonly then: Record<"open" | "closed" | "local", Seen[]>;
  /** The number of admitted requests, of several that one client sends at once after the recovery. */
  readonly admittedAfter: number;
  /** The number of requests after the recovery that were decided. */
  readonly sentAfter: number;
  readonly log: string[];
}

const ROUNDS = 30;
/** The longest time for which Weir suppresses a line about an outage after another outage. */
const OUTAGE_INTERVAL_MS = 10_000;
let clients = 0;

/** Causes a fault, ends it, and observes its effects, with new clients for each fault. */
export async function observe<Environment>(
  { environment, worker }: Setting<Environment>,
  fault: Fault<Environment>,
): Promise<Observed> {
  const { url } = worker;
  const isLate = fault.cause === "timeout";
  await worker.advance(OUTAGE_INTERVAL_MS);
  // The first request of an isolate is slower than later requests, and Redis may not have the
  // script yet.
  await recovery(worker);
  const logged = (await worker.allLogs()).length;
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
    const first = await answered(
      worker,
      [PATHS.open, PATHS.closed, PATHS.local, PATHS.closedOverLocal, PATHS.localOverOpen]
        .slice(0, FAILURES_TO_OPEN)
        .map((path) => see(url, path, newClient())),
      isLate,
    );
    const [open, closed, local, closedOverLocal, localOverOpen] = first as [
      Seen,
      Seen,
      Seen,
      Seen,
      Seen,
    ];
    const then = await whileOpen(worker, isLate);
    await end();
    await recovery(worker);
    const { admitted, sent } = await burst(url);
    return {
      before,
      atFirst: { open, closed, local, closedOverLocal, localOverOpen },
      then,
      admittedAfter: admitted,
      sentAfter: sent,
      log: faultsIn((await worker.allLogs()).slice(logged)),
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
 * Waits until all these requests are answered.
 *
 * @param isLate whether they are answered only at their deadline. Otherwise no time passes
 */
async function answered(
  worker: FaultyWorker,
  requests: readonly Promise<Seen>[],
  isLate: boolean,
): Promise<Seen[]> {
  let isOver = false;
  const all = Promise.all(requests).finally(() => {
    isOver = true;
  });
  while (isLate && !isOver) {
    // The origin answers before time passes.
    for (let turn = 0; turn < 3; turn++) await send(worker.url, PATHS.free);
    if (!isOver) await worker.advance(TIMEOUT_MS / CHECKS_PER_DEADLINE);
  }
  return await all;
}

/** Sends requests one after the other. The first calls of a store that is late open the breaker. */
async function whileOpen(worker: FaultyWorker, isLate: boolean): Promise<Observed["then"]> {
  const seen: Record<"open" | "closed" | "local", Seen[]> = { open: [], closed: [], local: [] };
  // All requests come from one client, so the `local` rule admits only two of them in this isolate.
  const client = newClient();
  for (let round = 0; round < ROUNDS; round++) {
    const kind = (["open", "closed", "local"] as const)[round % 3] as "open";
    seen[kind].push(...(await answered(worker, [see(worker.url, PATHS[kind], client)], isLate)));
  }
  return seen;
}

/** Waits until Weir calls the store again and decides. */
async function recovery(worker: FaultyWorker): Promise<void> {
  const client = newClient();
  await vi.waitFor(async () => {
    await worker.advance(PAUSE_MS);
    expect((await see(worker.url, PATHS.closed, client)).isDecided).toBe(true);
  }, PATIENCE);
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
  const { status, headers }: Answer = await send(url, path, {
    headers: { "CF-Connecting-IP": client },
  });
  const isDecided = headers.ratelimit !== undefined;
  return { status, isDecided, ms: Number(headers["x-took"]) };
}

function newClient(): string {
  clients += 1;
  return `198.18.${(process.pid % 100) + (clients >>> 8)}.${clients & 255}`;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}
