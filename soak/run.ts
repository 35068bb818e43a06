import { type OwnRedis, startOwnRedis } from "../dev/own-redis.ts";
import { FAULTS, type Fault, type FaultTargets } from "./faults.ts";
import { hangUpDuring } from "./hang-ups.ts";
import { Inspector, type Phase } from "./inspector.ts";
import { createLoadGenerator, type LoadGenerator } from "./load.ts";
import type { SoakOptions } from "./options.ts";
import { type MemorySample, type Report, reportOf } from "./report.ts";
import { ISOLATES, RULES } from "./rules.ts";
import { type Runtime, startBaseline, startWeir } from "./runtime.ts";
import { startBackend } from "./start-backend.ts";
import { createTraffic } from "./traffic.ts";

/** The durations of a round's phases, in milliseconds: calm, a fault, after the fault, baseline. */
const CALM_MS = 8000;
const FAULT_MS = 4000;
const AFTER_MS = 4000;
const BASELINE_MS = 3000;

const SAMPLE_MS = 1000;

const CALM: Phase = { name: "calm", isDisturbed: false };
const AFTER_FAULT: Phase = { name: "after a fault", isDisturbed: true };
const BASELINE: Phase = { name: "baseline", isDisturbed: false };

/** The servers, Workers and load generators of a run. */
interface Environment extends FaultTargets {
  readonly weir: Runtime;
  readonly weirLoad: LoadGenerator;
  readonly baselineLoad: LoadGenerator;
}

/** The results of a run, and the number of additional requests during which a client hung up. */
export type SoakReport = Report & { readonly hangUps: number };

/**
 * Starts the servers and the Workers, sends traffic in rounds for `options.minutes`, and stops everything.
 *
 * @param signal ends the run after its current round
 * @throws {Error} when PATH has no redis-server
 */
export async function soak(
  options: SoakOptions,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<SoakReport> {
  const stops: (() => Promise<void>)[] = [];
  try {
    const environment = await startEnvironment(options, stops);
    const memory = watchMemory(environment.weir);
    stops.push(async () => memory.stop());
    const phases = new PhaseRunner(options, environment);

    const startedAt = performance.now();
    const endsAt = startedAt + options.minutes * 60_000;
    for (let round = 0; performance.now() < endsAt && !signal.aborted; round++) {
      const fault = FAULTS[round % FAULTS.length] as Fault;
      await phases.run(CALM, CALM_MS);
      onProgress(`${((performance.now() - startedAt) / 1000).toFixed(0)} s: ${fault.name}`);
      await phases.runFault(fault);
      await phases.runBaseline();
    }
    const { inspector, hangUps } = phases;
    inspector.ledger.checkUntil(Number.POSITIVE_INFINITY);
    return { ...reportOf(options, inspector, memory.samples, environment.weir.logs), hangUps };
  } finally {
    // The parts stop in reverse order, so that no part stops before the parts that use it.
    for (const stop of stops.reverse()) await stop();
  }
}

/**
 * @param stops the list to which this function adds, for each started part, a function that stops
 *   the part. So the caller can stop the earlier parts even if a later part fails to start
 */
async function startEnvironment(
  { timeoutMs, connections }: SoakOptions,
  stops: (() => Promise<void>)[],
): Promise<Environment> {
  function stopLater<Part extends { stop(): Promise<void> }>(part: Part): Part {
    stops.push(part.stop);
    return part;
  }
  const redis: OwnRedis | undefined = await startOwnRedis();
  if (!redis) throw new Error("The soak needs redis-server, and PATH has none.");
  stopLater(redis);
  const backend = stopLater(await startBackend(redis));
  const weir = stopLater(await startWeir(ISOLATES, { rules: RULES, timeoutMs }, backend.vars));
  const baseline = stopLater(await startBaseline(backend.vars));
  const weirLoad = stopLater(createLoadGenerator(weir.urls, connections));
  const baselineLoad = stopLater(createLoadGenerator(baseline.urls, connections));
  return { redis, backend, weir, weirLoad, baselineLoad };
}

/** Runs the phases of a round and passes every answer to the inspector. */
class PhaseRunner {
  readonly inspector: Inspector;
  hangUps = 0;
  readonly #environment: Environment;
  readonly #nextRequest: ReturnType<typeof createTraffic>;
  readonly #nextHangUp: ReturnType<typeof createTraffic>;

  constructor({ timeoutMs, marginMs, seed }: SoakOptions, environment: Environment) {
    this.inspector = new Inspector(timeoutMs + marginMs);
    this.#environment = environment;
    this.#nextRequest = createTraffic(seed);
    this.#nextHangUp = createTraffic(seed + 1);
  }

  /** Sends traffic to Weir, while other clients hang up. */
  async run(phase: Phase, durationMs: number): Promise<void> {
    const { weir, weirLoad } = this.#environment;
    await this.#measure(phase, async () => {
      const load = weirLoad.run(durationMs, this.#nextRequest, (request, answer) => {
        this.inspector.inspect(phase, request, answer);
      });
      this.hangUps += await hangUpDuring(load, weir.urls, this.#nextHangUp);
    });
  }

  async runFault({ name, begin, end, losesCounts }: Fault): Promise<void> {
    if (losesCounts) this.inspector.ledger.recordLoss(Date.now());
    const duringFault = this.run({ name, isDisturbed: true }, FAULT_MS);
    await begin(this.#environment);
    await duringFault;
    const afterFault = this.run(AFTER_FAULT, AFTER_MS);
    await end(this.#environment);
    await afterFault;
  }

  /** Sends the kind of traffic that Weir gets to the Worker that only forwards. */
  async runBaseline(): Promise<void> {
    const { baselineLoad } = this.#environment;
    await this.#measure(BASELINE, () =>
      baselineLoad.run(BASELINE_MS, this.#nextRequest, (request, answer) => {
        // The baseline has no rules, so the inspector must expect none.
        this.inspector.inspect(BASELINE, { ...request, onError: "none" }, answer);
      }),
    );
  }

  async #measure(phase: Phase, run: () => Promise<void>): Promise<void> {
    const startedAt = performance.now();
    await run();
    this.inspector.totalsOf(phase.name).durationMs += performance.now() - startedAt;
    this.inspector.ledger.checkUntil(Date.now());
  }
}

function watchMemory(runtime: Runtime): { samples: MemorySample[]; stop(): void } {
  const samples: MemorySample[] = [];
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const residentBytes = runtime.residentBytes();
    if (residentBytes !== undefined) {
      samples.push({ atMs: performance.now() - startedAt, residentBytes });
    }
  }, SAMPLE_MS);
  return { samples, stop: () => clearInterval(timer) };
}
