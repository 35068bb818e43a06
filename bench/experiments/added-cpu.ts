import type { Stage } from "../environment/environment.ts";
import type { Runtime, RuntimeOptions } from "../environment/runtime.ts";
import { weirConfig } from "../environment/subjects.ts";
import { clientAddress, LIMITED_PATH } from "../load/clients.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { untilWindowHasRoom } from "../load/window.ts";
import { differences, type Spread, spreadOf, turn } from "./paired-rounds.ts";

/** So high that leases are as large as they get, and that no request is denied. */
const LIMIT = 100_000_000;
const WINDOW_MS = 3_600_000;
/** Longer than any round takes. */
const ROUND_MS = 20_000;
/** A round's requests are sent in so many slices, between which the Workers take turns. */
const SLICES = 8;

/** CPU time of a request in each round, in microseconds. */
type RoundCpu = { forward: number; fields: number; weir: number };

/** What Weir adds to the CPU time of a forwarded request that is decided from memory. */
export type AddedCpu = {
  /** Requests that each subject had in a round. */
  requests: number;
  rounds: RoundCpu[];
  forward: Spread;
  fields: Spread;
  weir: Spread;
  /** Weir's less that of a Worker that only forwards. */
  overForward: Spread;
  /** Weir's less that of a Worker that forwards and adds two fixed fields. */
  overFields: Spread;
  /** REST calls for each of Weir's requests: next to none, or they were not decided from memory. */
  restCallsPerRequest: number;
};

export type AddedCpuOptions = { rounds: number; requests: number; warmUp: number };

/**
 * Measures three Workers in turns: within a round each gets its requests in eight slices, with those of
 * the other two between them, so that whatever else the machine does slows all three alike. CPU time is
 * read before and after a round, in which it grows by about a second: the kernel counts in steps of 10 ms.
 *
 * @returns undefined where CPU time cannot be read
 * @throws when a request was not admitted
 */
export async function measureAddedCpu(
  stage: Stage,
  distanceMs: number,
  { rounds, requests, warmUp }: AddedCpuOptions,
): Promise<AddedCpu | undefined> {
  const CONFIG = JSON.stringify({ ...weirConfig(LIMIT), prefix: "added-cpu" });
  const workers: Record<keyof RoundCpu, RuntimeOptions> = {
    forward: { worker: "floor.ts", vars: {} },
    fields: { worker: "fixed-fields.ts", vars: {} },
    weir: { worker: "weir.ts", vars: { CONFIG } },
  };
  const runtimes: { name: keyof RoundCpu; runtime: Runtime }[] = [];
  try {
    for (const name of ["forward", "fields", "weir"] as const) {
      runtimes.push({ name, runtime: await stage.start(workers[name], distanceMs) });
    }
    for (const { runtime } of runtimes) await send(runtime, warmUp);

    const slice = Math.ceil(requests / SLICES);
    const cpus: RoundCpu[] = [];
    const callsBefore = await stage.backend.restCalls();
    for (let round = 0; round < rounds; round++) {
      await untilWindowHasRoom(WINDOW_MS, ROUND_MS);
      const before = runtimes.map(({ runtime }) => runtime.cpuMicroseconds());
      for (let number = 0; number < SLICES; number++) {
        for (const { runtime } of turn(runtimes, round * SLICES + number))
          await send(runtime, slice);
      }
      const cpu: RoundCpu = { forward: 0, fields: 0, weir: 0 };
      for (const [index, { name, runtime }] of runtimes.entries()) {
        const [from, to] = [before[index], runtime.cpuMicroseconds()];
        if (from === undefined || to === undefined) return undefined;
        cpu[name] = (to - from) / (slice * SLICES);
      }
      cpus.push(cpu);
    }
    const calls = (await stage.backend.restCalls()) - callsBefore;
    const restCallsPerRequest = calls / (rounds * slice * SLICES);
    return { requests: slice * SLICES, restCallsPerRequest, ...summarizeRounds(cpus) };
  } finally {
    for (const { runtime } of runtimes) await runtime.stop();
  }
}

export function summarizeRounds(
  rounds: RoundCpu[],
): Omit<AddedCpu, "requests" | "restCallsPerRequest"> {
  const of = (name: keyof RoundCpu) => rounds.map((round) => round[name]);
  return {
    rounds,
    forward: spreadOf(of("forward")),
    fields: spreadOf(of("fields")),
    weir: spreadOf(of("weir")),
    overForward: spreadOf(differences(of("weir"), of("forward"))),
    overFields: spreadOf(differences(of("weir"), of("fields"))),
  };
}

/** One client's requests, over 16 connections. */
async function send({ urls }: Runtime, count: number): Promise<void> {
  const request = { client: clientAddress(1, 0), path: LIMITED_PATH };
  const { admissions } = await closedLoop(
    urls,
    Array.from({ length: count }, () => request),
  );
  const { admitted } = admissions.summary(LIMIT);
  if (admitted < count)
    throw new Error(`${count - admitted} of ${count} requests did not come through.`);
}
