/**
 * `npm run simulate:fan-in`: simulates isolates that upload their sums to the control object, and counts the calls that
 * the object gets, and how old the overrides are that requests use.
 */
import { pathToFileURL } from "node:url";
import { markdownTable } from "markdown-table";
import { ControlLink } from "../../src/control/control-link.ts";
import type { StatisticsUpload, UploadAnswer } from "../../src/control/protocol.ts";
import { CallSlots, Sources } from "../../src/control/uploads.ts";
import { LiveOverrides } from "../../src/overrides/live-overrides.ts";
import { Recorder } from "../../src/statistics/recorder.ts";
import { Random } from "./random.ts";
import { VirtualTime, WORLD } from "./virtual-time.ts";

export interface FanInScenario {
  readonly isolates: number;
  /** All isolates start within this time, at random moments. */
  readonly startWithinMs: number;
  /** The mean life of an isolate; a new one replaces each that ends. */
  readonly meanLifeMs: number;
}

interface FanInResult {
  /** The most calls that the object got in one second, while isolates start, and afterwards. */
  readonly startCalls: number;
  readonly calls: number;
  /** The greatest age of the overrides that a request used, after all isolates have started. */
  readonly oldestOverridesMs: number;
  /** The requests that isolates have handled, and the requests that the object has counted. */
  readonly requests: number;
  readonly counted: number;
}

/** The mean interval between two requests of an isolate. */
const REQUEST_INTERVAL_MS = 1000;

/** The one-way time of a call to the object. */
const ONE_WAY_MS = 100;

/** The time for isolates to start, and for the object to learn their number. */
const STARTED_MS = 30_000;

const DURATION_MS = 180_000;

/** Simulates busy isolates. They use Weir's own ControlLink; the simulated object has no tables. */
export async function simulateFanIn(scenario: FanInScenario): Promise<FanInResult> {
  const startsAt = Date.UTC(2026, 0, 1);
  const time = new VirtualTime(startsAt);
  const random = new Random(1, "fan-in");
  const calls = new Array<number>(DURATION_MS / 1000).fill(0);
  const sources = new Sources();
  const slots = new CallSlots();
  const totals = { oldestOverridesMs: 0, requests: 0, counted: 0 };

  const delay = (ms: number) =>
    new Promise<void>((resolve) => time.at(time.now + ms, WORLD, resolve));
  async function upload(sums: StatisticsUpload): Promise<UploadAnswer> {
    await delay(ONE_WAY_MS);
    const now = Math.floor(time.now);
    const second = Math.floor((now - startsAt) / 1000);
    calls[second] = (calls[second] ?? 0) + 1;
    if (sources.see(sums, now)) {
      for (const { requests } of sums.minutes) totals.counted += requests.requests;
    }
    // The version tells the isolate how old its overrides are.
    const overrides = { version: now, all: [] };
    const answer = { callAgainMs: slots.take(now), overrides };
    await delay(ONE_WAY_MS);
    return answer;
  }

  function startIsolate(at: number): void {
    const overrides = new LiveOverrides();
    const recorder = new Recorder({ background: () => {} });
    const options = { upload, timeoutMs: 1000, background: () => {}, onFailure: () => {} };
    const link = new ControlLink(
      { ...options, random: () => random.uniform(), clock: () => Math.floor(time.now) },
      overrides,
      recorder,
    );
    const endsAt = Math.min(at + random.exponential(scenario.meanLifeMs), startsAt + DURATION_MS);
    const request = async () => {
      if (time.now >= endsAt) {
        if (endsAt < startsAt + DURATION_MS) startIsolate(endsAt);
        return;
      }
      time.at(time.now + random.exponential(REQUEST_INTERVAL_MS), WORLD, request);
      await link.loadIfStale(Date.now());
      totals.requests += 1;
      link.record([], undefined, Date.now());
      if (time.now < startsAt + STARTED_MS) return;
      totals.oldestOverridesMs = Math.max(totals.oldestOverridesMs, time.now - overrides.version);
    };
    time.at(at, WORLD, request);
  }

  for (let i = 0; i < scenario.isolates; i++) {
    startIsolate(startsAt + random.uniform() * scenario.startWithinMs);
  }
  await time.run();
  const started = STARTED_MS / 1000;
  return {
    startCalls: Math.max(...calls.slice(0, started)),
    calls: Math.max(...calls.slice(started, DURATION_MS / 1000)),
    ...totals,
  };
}

const DEPLOY = { startWithinMs: 5000, meanLifeMs: Number.POSITIVE_INFINITY };

const SCENARIOS: Readonly<Record<string, FanInScenario>> = {
  "100 isolates that a deploy starts": { ...DEPLOY, isolates: 100 },
  "1,000 isolates that a deploy starts": { ...DEPLOY, isolates: 1000 },
  "1,000 isolates that live for a minute": { ...DEPLOY, isolates: 1000, meanLifeMs: 60_000 },
  "10,000 isolates that start over 20 seconds": {
    ...DEPLOY,
    isolates: 10_000,
    startWithinMs: 20_000,
  },
};

async function printScenarios(): Promise<void> {
  const rows: string[][] = [];
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    const { startCalls, calls, oldestOverridesMs, requests, counted } =
      await simulateFanIn(scenario);
    const age = `${(oldestOverridesMs / 1000).toFixed(1)} s`;
    rows.push([name, `${startCalls}`, `${calls}`, age, `${requests}`, `${requests - counted}`]);
  }
  const columns = ["calls in a second at the start", "later", "oldest overrides", "requests"];
  console.log(markdownTable([["scenario", ...columns, "not counted"], ...rows]));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await printScenarios();
