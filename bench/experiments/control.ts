import type { Environment } from "../environment/environment.ts";
import type { Runtime } from "../environment/runtime.ts";
import { weirConfig } from "../environment/subjects.ts";
import { clientAddress, LIMITED_PATH } from "../load/clients.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { pairedDifferences, rotate, type Spread, spreadOf } from "./paired-rounds.ts";

/** A limit so high that leases have their largest size and no request is denied. */
const LIMIT = 100_000_000;
/** A round is divided into this many slices. The Workers take turns after each slice. */
const SLICES = 8;

/** The cost of statistics, overrides and the denial log for a request that is decided from memory. */
export interface ControlCost {
  /** The CPU time of a decision with these three features, minus the time without them, in microseconds. */
  readonly perDecision: Spread;
  /** The CPU time of a decision without the three features, in microseconds. */
  readonly decision: Spread;
  /** How many fewer requests of one client a Worker handles in a second, in percent. */
  readonly throughputLoss: Spread;
  /** How much more CPU time a forwarded request takes, in percent. */
  readonly cpuGrowth: Spread;
}

export interface ControlCostOptions {
  readonly rounds: number;
  /** Decisions of each Worker in a slice of a round. */
  readonly decisions: number;
  /** Requests to each Worker in a slice of a round. */
  readonly requests: number;
}

interface Pair {
  readonly on: Runtime;
  readonly off: Runtime;
}

/**
 * Compares two Workers. One has statistics, an override of its rule, an override of a client, and the denial log; the
 * other has none of these. The Workers take turns in slices of each round, so that unrelated work on the machine slows
 * both equally.
 *
 * @returns undefined if CPU time cannot be read
 * @throws {Error} when a Worker answers with an error
 */
export async function measureControlCost(
  environment: Environment,
  redisLatencyMs: number,
  { rounds, decisions, requests }: ControlCostOptions,
): Promise<ControlCost | undefined> {
  const loops = await startPair(environment, redisLatencyMs, "decision-loop.ts");
  let perSlice: { on: number; off: number }[];
  try {
    await inTurns(loops, 1, (runtime) => cpuOf(runtime, () => decide(runtime, decisions)));
    perSlice = await inTurns(loops, rounds, (runtime) =>
      cpuOf(runtime, () => decide(runtime, decisions)),
    );
  } finally {
    await stopPair(loops);
  }
  const forwards = await startPair(environment, redisLatencyMs, "weir-control.ts");
  try {
    await inTurns(forwards, 1, (runtime) => send(runtime, requests));
    const elapsed: { on: number; off: number }[] = [];
    const cpu = await inTurns(forwards, rounds, (runtime, round, name) =>
      cpuOf(runtime, async () => {
        const ms = await send(runtime, requests);
        elapsed[round] ??= { on: 0, off: 0 };
        elapsed[round][name] += ms;
      }),
    );
    if ([...perSlice, ...cpu].some(({ on, off }) => Number.isNaN(on + off))) return undefined;
    const total = decisions * SLICES;
    const [on, off] = [perSlice.map((each) => each.on), perSlice.map((each) => each.off)];
    return {
      perDecision: spreadOf(pairedDifferences(on, off).map((cost) => cost / total)),
      decision: spreadOf(off.map((each) => each / total)),
      throughputLoss: spreadOf(elapsed.map((each) => 100 * (1 - each.off / each.on))),
      cpuGrowth: spreadOf(cpu.map((each) => 100 * (each.on / each.off - 1))),
    };
  } finally {
    await stopPair(forwards);
  }
}

async function startPair(
  environment: Environment,
  redisLatencyMs: number,
  worker: string,
): Promise<Pair> {
  const start = (name: string, control: boolean, denialLog: number) => {
    const CONFIG = JSON.stringify({ ...weirConfig(LIMIT), prefix: `${worker}-${name}`, denialLog });
    return environment.startWorker({ worker, vars: { CONFIG }, control }, redisLatencyMs);
  };
  const [on, off] = [await start("on", true, 10), await start("off", false, 0)];
  const response = await fetch(new URL("/set-overrides", on.urls[0]));
  if (!response.ok) throw new Error(`The overrides were answered with ${response.status}.`);
  return { on, off };
}

async function stopPair({ on, off }: Pair): Promise<void> {
  await on.stop();
  await off.stop();
}

/** Runs a task with each Worker, in slices. Returns the sums of its results for each round. */
async function inTurns(
  { on, off }: Pair,
  rounds: number,
  task: (runtime: Runtime, round: number, name: "on" | "off") => Promise<number>,
): Promise<{ on: number; off: number }[]> {
  const sums: { on: number; off: number }[] = [];
  const pair = [["on", on] as const, ["off", off] as const];
  for (let round = 0; round < rounds; round++) {
    const sum = { on: 0, off: 0 };
    for (let slice = 0; slice < SLICES; slice++) {
      for (const [name, runtime] of rotate(pair, slice)) {
        sum[name] += await task(runtime, round, name);
      }
    }
    sums.push(sum);
  }
  return sums;
}

/** Returns the CPU time of a task in microseconds; NaN if it cannot be read. */
async function cpuOf(runtime: Runtime, task: () => Promise<unknown>): Promise<number> {
  const before = runtime.cpuMicroseconds() ?? Number.NaN;
  await task();
  return (runtime.cpuMicroseconds() ?? Number.NaN) - before;
}

async function decide(runtime: Runtime, wanted: number): Promise<void> {
  const url = new URL(`${LIMITED_PATH}?decisions=${wanted}`, runtime.urls[0]);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`The decision loop answered with status ${response.status}.`);
  const { decisions } = (await response.json()) as { decisions: number };
  if (decisions < wanted) throw new Error(`Only ${decisions} of ${wanted} decisions were made.`);
}

/** Sends requests of one client over 16 connections. Returns the time that this took. */
async function send({ urls }: Runtime, count: number): Promise<number> {
  const request = { client: clientAddress(1, 0), path: LIMITED_PATH };
  const { admissions, elapsedMs } = await closedLoop(
    urls,
    Array.from({ length: count }, () => request),
  );
  const { admitted } = admissions.summary(LIMIT);
  if (admitted < count) throw new Error(`${count - admitted} requests were not admitted.`);
  return elapsedMs;
}
