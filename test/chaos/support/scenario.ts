import { setTimeout as delay } from "node:timers/promises";
import { FAILURES_TO_OPEN } from "../../../src/stores/circuit.ts";
import { type Answer, send } from "../../node/support/client.ts";
import { besideControl } from "../../node/support/control.ts";
import type { Fault } from "./fault.ts";
import { LIMIT, PATHS } from "./rules.ts";

/** An isolate that has just started, before a store on a stage. */
export type Setting<Stage> = {
  stage: Stage;
  url: URL;
  /** What has been logged so far. */
  logs(): readonly string[];
};

/** What a client sees of one answer. */
export type Seen = { status: number; isDecided: boolean; ms: number };

/** All that is to be seen of a fault, from outside. */
export type Observed = {
  before: Seen[];
  /** While the breaker was closed: each path once, as many as it takes to open it. */
  atFirst: Record<"open" | "closed" | "local" | "closedOverLocal" | "localOverOpen", Seen>;
  /** What the slowest request without a rule took in that time, in milliseconds. */
  controlMs: number;
  /** While it was open. */
  then: Record<"open" | "closed" | "local", Seen[]>;
  /** What a decision added at the median while it was open, in milliseconds. */
  addedMs: number;
  /** How long after its end the store was counted in again; undefined: not within 10 s. */
  recoveredMs: number | undefined;
  /** Of one client's requests at once, after that. */
  admittedAfter: number;
  sentAfter: number;
  log: string[];
};

const ROUNDS = 40;
const RECOVERY_MS = 10_000;
let clients = 0;

/** Brings a fault about and ends it, and watches. Each has clients of its own. */
export async function observe<Stage>(
  { stage, url, logs }: Setting<Stage>,
  fault: Fault<Stage>,
): Promise<Observed> {
  // An isolate's first request takes longer than others, and Redis may not know the script yet.
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
    await fault.end(stage);
  }
  try {
    await fault.begin(stage);
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
    const { addedMs, ...then } = await whileOpen(url);
    await end();
    const recoveredMs = await recovery(url);
    const { admitted, sent } = await burst(url);
    return {
      before,
      atFirst: { open, closed, local, closedOverLocal, localOverOpen },
      controlMs,
      then,
      addedMs,
      recoveredMs,
      admittedAfter: admitted,
      sentAfter: sent,
      log: await settled(() => logs().slice(logged)),
    };
  } finally {
    await end();
  }
}

/** One request after the other, each beside one that falls under no rule. */
async function whileOpen(url: URL) {
  const seen: Record<"open" | "closed" | "local", Seen[]> = { open: [], closed: [], local: [] };
  const [limited, free]: [number[], number[]] = [[], []];
  // The same client all the time, which has room for two in this isolate where the rule is local.
  const client = newClient();
  for (let round = 0; round < ROUNDS; round++) {
    const kind = (["open", "closed", "local"] as const)[round % 3] as "open";
    const answer = await see(url, PATHS[kind], client);
    seen[kind].push(answer);
    limited.push(answer.ms);
    free.push((await see(url, PATHS.free, client)).ms);
  }
  return { ...seen, addedMs: median(limited) - median(free) };
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

/** Half as many requests again as there is quota for, at once. */
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

/** Lines come a moment after the answers that they are about: all of them, once no more come. */
async function settled(read: () => readonly string[]): Promise<string[]> {
  let lines = read();
  for (let looks = 0; looks < 20; looks++) {
    await delay(50);
    const more = read();
    if (more.length === lines.length && more.some((line) => line.includes('"closed"'))) break;
    lines = more;
  }
  return [...lines];
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}
