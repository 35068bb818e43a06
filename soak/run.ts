import { type OwnRedis, startOwnRedis } from "../dev/own-redis.ts";
import { FAULTS, type Fault } from "./faults.ts";
import { hangUpDuring } from "./hang-ups.ts";
import { Inspector, type Phase } from "./inspector.ts";
import { createLoad, type Load } from "./load.ts";
import type { SoakOptions } from "./options.ts";
import { type Report, reportOf, type Sample } from "./report.ts";
import { ISOLATES, RULES } from "./rules.ts";
import { type Runtime, startFloor, startWeir } from "./runtime.ts";
import { startBackend } from "./start-backend.ts";
import { createTraffic } from "./traffic.ts";

/** A round, in milliseconds: calm, a fault, what comes after it, and the floor. */
const CALM_MS = 8000;
const FAULT_MS = 4000;
const AFTER_MS = 4000;
const FLOOR_MS = 3000;

const SAMPLE_MS = 1000;

const CALM: Phase = { name: "calm", isTroubled: false };
const FLOOR: Phase = { name: "the floor", isTroubled: false };

/** Runs it all, and ends all that it has started. @throws when there is no redis-server */
export async function soak(
  options: SoakOptions,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Report & { cuts: number }> {
  const ends: (() => Promise<void>)[] = [];
  function ending<Part extends { stop(): Promise<void> }>(part: Part): Part {
    ends.push(part.stop);
    return part;
  }
  try {
    const redis: OwnRedis | undefined = await startOwnRedis();
    if (!redis) throw new Error("The soak needs redis-server, and PATH has none.");
    ending(redis);
    const backend = ending(await startBackend(redis));
    const config = { rules: RULES, timeoutMs: options.timeoutMs };
    const weir = ending(await startWeir(ISOLATES, config, backend.vars));
    const floor = ending(await startFloor(backend.vars));
    const load = ending(createLoad(weir.urls, options.connections));
    const floorLoad = ending(createLoad(floor.urls, options.connections));
    const inspector = new Inspector(options.timeoutMs + options.marginMs);
    const memory = watchMemory(weir);
    ends.push(async () => memory.stop());

    const next = createTraffic(options.seed);
    const nextCut = createTraffic(options.seed + 1);
    let cuts = 0;
    async function during(phase: Phase, ms: number, by: Load = load): Promise<void> {
      const startedAt = performance.now();
      const run = by.run(ms, next, (outgoing, answer) => {
        // The floor decides nothing, so it is only timed.
        const sent = by === load ? outgoing : { ...outgoing, onError: "none" as const };
        inspector.see(phase, sent, answer);
      });
      if (by === load) cuts += await hangUpDuring(run, weir.urls, nextCut);
      else await run;
      inspector.tallyOf(phase.name).ms += performance.now() - startedAt;
      inspector.ledger.close(Date.now());
    }

    async function withFault({ name, begin, end, losesCounts }: Fault): Promise<void> {
      const phase: Phase = { name, isTroubled: true };
      if (losesCounts) inspector.ledger.lostAt(Date.now());
      const isOver = during(phase, FAULT_MS);
      await begin({ redis: redis as OwnRedis, backend });
      await isOver;
      const isBack = during({ name: "after a fault", isTroubled: true }, AFTER_MS);
      await end({ redis: redis as OwnRedis, backend });
      await isBack;
    }

    const startedAt = performance.now();
    const endsAt = startedAt + options.minutes * 60_000;
    for (let round = 0; performance.now() < endsAt && !signal.aborted; round++) {
      const fault = FAULTS[round % FAULTS.length] as Fault;
      await during(CALM, CALM_MS);
      say(`${((performance.now() - startedAt) / 1000).toFixed(0)} s: ${fault.name}`);
      await withFault(fault);
      await during(FLOOR, FLOOR_MS, floorLoad);
    }
    inspector.ledger.close(Number.POSITIVE_INFINITY);
    return { ...reportOf(options, inspector, memory.samples, weir.logs), cuts };
  } finally {
    // The last one first: nothing is taken away from under what still uses it.
    for (const end of ends.reverse()) await end();
  }
}

function watchMemory(runtime: Runtime): { samples: Sample[]; stop(): void } {
  const samples: Sample[] = [];
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const residentBytes = runtime.residentBytes();
    if (residentBytes !== undefined) {
      samples.push({ atMs: performance.now() - startedAt, residentBytes });
    }
  }, SAMPLE_MS);
  return { samples, stop: () => clearInterval(timer) };
}
