import type { Environment } from "../environment/environment.ts";
import type { Runtime, RuntimeOptions } from "../environment/runtime.ts";
import { weirConfig } from "../environment/subjects.ts";
import { clientAddress, LIMITED_PATH } from "../load/clients.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { waitForWindow } from "../load/window.ts";
import { pairedDifferences, rotate, type Spread, spreadOf } from "./paired-rounds.ts";

/** A limit so high that leases have their largest size and no request is denied. */
const LIMIT = 100_000_000;
const WINDOW_MS = 3_600_000;
/** Every round takes less than this time, in milliseconds. */
const ROUND_MS = 20_000;
/** A round is divided into this many slices. The Workers take turns after each slice. */
const SLICES = 8;

/** CPU time of a request in one round, in microseconds, for each of the three Workers. */
interface RoundCpu {
  forward: number;
  fields: number;
  weir: number;
}

/** The CPU time that Weir adds to a forwarded request when it decides from memory, in microseconds. */
export interface AddedCpu {
  /** Requests that each Worker gets in a round. */
  readonly requests: number;
  readonly rounds: readonly RoundCpu[];
  readonly forward: Spread;
  readonly fields: Spread;
  readonly weir: Spread;
  /** The CPU time of Weir, minus the time of a Worker that only forwards. */
  readonly overForward: Spread;
  /** The CPU time of Weir, minus the time of a Worker that forwards and adds two fixed header fields. */
  readonly overFields: Spread;
  /** REST calls for each request to Weir. The figures are valid only if this is close to 0. */
  readonly restCallsPerRequest: number;
}

export interface AddedCpuOptions {
  readonly rounds: number;
  /** Requests that each Worker gets in a round. */
  readonly requests: number;
  /** Requests that each Worker gets before the first round. */
  readonly warmUp: number;
}

/**
 * Measures three Workers that take turns. In a round, each Worker gets its requests in eight
 * slices. The Workers take turns after each slice, so that unrelated work on the machine slows all
 * three equally. CPU time is read before and after a round. A round takes approximately one second
 * of CPU time, which is much more than the kernel's steps of 10 ms.
 *
 * @returns undefined if CPU time cannot be read
 * @throws {Error} when a request was not admitted
 */
export async function measureAddedCpu(
  environment: Environment,
  redisLatencyMs: number,
  { rounds, requests, warmUp }: AddedCpuOptions,
): Promise<AddedCpu | undefined> {
  const runtimes: NamedRuntime[] = [];
  try {
    for (const [name, options] of Object.entries(workerOptions())) {
      const runtime = await environment.startWorker(options, redisLatencyMs);
      runtimes.push({ name: name as keyof RoundCpu, runtime });
    }
    for (const { runtime } of runtimes) await send(runtime, warmUp);

    const slice = Math.ceil(requests / SLICES);
    const cpus: RoundCpu[] = [];
    const callsBefore = await environment.backend.restCalls();
    for (let round = 0; round < rounds; round++) {
      await waitForWindow(WINDOW_MS, ROUND_MS);
      const cpu = await runRound(runtimes, round, slice);
      if (!cpu) return undefined;
      cpus.push(cpu);
    }
    const calls = (await environment.backend.restCalls()) - callsBefore;
    const restCallsPerRequest = calls / (rounds * slice * SLICES);
    return { requests: slice * SLICES, restCallsPerRequest, ...summarizeRounds(cpus) };
  } finally {
    for (const { runtime } of runtimes) await runtime.stop();
  }
}

interface NamedRuntime {
  readonly name: keyof RoundCpu;
  readonly runtime: Runtime;
}

function workerOptions(): Record<keyof RoundCpu, RuntimeOptions> {
  const CONFIG = JSON.stringify({ ...weirConfig(LIMIT), prefix: "added-cpu" });
  return {
    forward: { worker: "baseline.ts", vars: {} },
    fields: { worker: "fixed-fields.ts", vars: {} },
    weir: { worker: "weir.ts", vars: { CONFIG } },
  };
}

/** @returns undefined if CPU time cannot be read */
async function runRound(
  runtimes: readonly NamedRuntime[],
  round: number,
  slice: number,
): Promise<RoundCpu | undefined> {
  const before = runtimes.map(({ runtime }) => runtime.cpuMicroseconds());
  for (let number = 0; number < SLICES; number++) {
    for (const { runtime } of rotate(runtimes, round * SLICES + number)) await send(runtime, slice);
  }
  const cpu: RoundCpu = { forward: 0, fields: 0, weir: 0 };
  for (const [index, { name, runtime }] of runtimes.entries()) {
    const [from, to] = [before[index], runtime.cpuMicroseconds()];
    if (from === undefined || to === undefined) return undefined;
    cpu[name] = (to - from) / (slice * SLICES);
  }
  return cpu;
}

/**
 * For each round, subtracts the CPU time of each Worker without Weir from the CPU time of Weir, and
 * summarizes the rounds.
 */
export function summarizeRounds(
  rounds: readonly RoundCpu[],
): Omit<AddedCpu, "requests" | "restCallsPerRequest"> {
  const valuesOf = (name: keyof RoundCpu) => rounds.map((round) => round[name]);
  const [forward, fields, weir] = [valuesOf("forward"), valuesOf("fields"), valuesOf("weir")];
  return {
    rounds,
    forward: spreadOf(forward),
    fields: spreadOf(fields),
    weir: spreadOf(weir),
    overForward: spreadOf(pairedDifferences(weir, forward)),
    overFields: spreadOf(pairedDifferences(weir, fields)),
  };
}

/** Sends requests of one client over 16 connections. */
async function send({ urls }: Runtime, count: number): Promise<void> {
  const request = { client: clientAddress(1, 0), path: LIMITED_PATH };
  const { admissions } = await closedLoop(
    urls,
    Array.from({ length: count }, () => request),
  );
  const { admitted } = admissions.summary(LIMIT);
  if (admitted < count) {
    throw new Error(`${count - admitted} of ${count} requests were not admitted.`);
  }
}
