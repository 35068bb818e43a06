import type { Demand } from "../../src/engine/counter.ts";
import { type EntryStore, withBatches } from "../../src/stores/batch.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";
import { type Answer, type Store, StoreError } from "../../src/stores/store.ts";
import { Fleet } from "./fleet.ts";
import { Ledger } from "./ledger.ts";
import { Network, type NetworkRecorder } from "./network.ts";
import { Random, seedOf } from "./random.ts";
import { type Request, withRequest } from "./request.ts";
import { audit, emptyResult, type RunResult } from "./run-result.ts";
import type { Scenario } from "./scenario.ts";
import type { Arrival, ClosedTraffic } from "./traffic.ts";
import { VirtualTime, WORLD } from "./virtual-time.ts";

/** Midnight of 2026-01-01 UTC. Windows of all simulated lengths start at this time. */
const STARTS_AT = Date.UTC(2026, 0, 1);

const BATCHES = { timeoutMs: 1000, keepAlive: () => {} };

/**
 * Runs a scenario once. The same seed gives the same result.
 *
 * @param meter also gets the events in the network
 */
export async function simulate(
  scenario: Scenario,
  seed: number,
  meter?: NetworkRecorder,
): Promise<RunResult> {
  const time = new VirtualTime(STARTS_AT);
  const random = (purpose: string) => new Random(seed, purpose);
  const result = emptyResult();
  const ledger = new Ledger(counterOf(scenario, 0));
  const store = createMemoryStore(Number.POSITIVE_INFINITY);
  const recorder = meter ? bothOf(ledger, meter) : ledger;
  const network = new Network(time, store, recorder, random("network"), scenario);
  const fleet = new Fleet(time, random("fleet"), scenario, (isolate) =>
    withBatches(entriesOver(network.connect(isolate)), BATCHES),
  );

  function send(client: number, onDecided: () => void = () => {}): void {
    const isolate = fleet.isolateFor(client);
    const request: Request = { client, isolate, at: time.now, answer: undefined };
    time.continueAs(isolate);
    result.offered++;
    isolate.waiting++;
    const counter = withRequest(counterOf(scenario, client), request);
    Promise.all(isolate.store.decide([[counter]]))
      .then(
        ([answer]) => recordDecision(request, answer as Answer),
        (error) => {
          if (!(error instanceof StoreError)) throw error;
          result.undecided++;
        },
      )
      .then(() => {
        isolate.waiting--;
        result.waits.push(time.now - request.at);
        onDecided();
      })
      .catch((error) => time.fail(error));
  }

  function recordDecision(request: Request, answer: Answer): void {
    if (answer.admitted) result.admitted++;
    ledger.recordDecision(request, answer, time.now);
  }

  const traffic = await scenario.traffic(random("traffic"));
  if (traffic.kind === "closed") {
    planClosed(time, traffic, send);
  } else {
    planOpen(time, traffic.arrivals, send);
    fleet.planDeaths(STARTS_AT + traffic.durationMs);
  }
  await time.run();

  const countOf = async (client: number, at: number) => {
    const counter = { ...counterOf(scenario, client), cost: 0 };
    const [answer] = await Promise.all(store.decide([[counter]], at));
    return answer?.tallies[0]?.count ?? 0;
  };
  await audit(result, ledger, scenario.limit, countOf);
  return { ...result, lostWithIsolate: fleet.lostWithIsolate };
}

/** Sends all entries of a call without merging equal ones: none are equal, because each counter has its request. */
function entriesOver(store: Store): EntryStore {
  return {
    async run(entries) {
      const groups = entries.flatMap(({ group }) => (group ? [group] : []));
      const unused = entries.flatMap((entry) => entry.unused);
      const answers = (await Promise.all(store.decide(groups, undefined, unused))).values();
      return entries.map(({ group }) => [group ? { decided: answers.next().value as Answer } : {}]);
    },
  };
}

/** Runs a scenario `scenario.runs` times, each time with a seed of its own. */
export async function simulateRuns(scenario: Scenario, seed: number): Promise<RunResult[]> {
  const results: RunResult[] = [];
  for (let run = 0; run < scenario.runs; run++) {
    results.push(await simulate(scenario, seedOf(seed, `${scenario.name}, run ${run}`)));
  }
  return results;
}

function bothOf(one: NetworkRecorder, other: NetworkRecorder): NetworkRecorder {
  return {
    recordCall(unused) {
      one.recordCall(unused);
      other.recordCall(unused);
    },
    recordCharges(...event) {
      one.recordCharges(...event);
      other.recordCharges(...event);
    },
    recordAnswer: (...event) => one.recordAnswer?.(...event),
    recordAdjustment(...event) {
      one.recordAdjustment?.(...event);
      other.recordAdjustment?.(...event);
    },
  };
}

export function counterOf({ limit, windowMs, leases = true }: Scenario, client: number): Demand {
  return {
    key: `weir:simulated:${windowMs}:${client}`,
    identity: `${client}`,
    limit,
    windowMs,
    offsetMs: 0,
    cost: 1,
    ceiling: limit,
    leasable: leases,
  };
}

/**
 * Plans each request at its time of arrival. Each request plans the next request, so that the queue
 * stays short.
 */
function planOpen(
  time: VirtualTime,
  arrivals: Iterable<Arrival>,
  send: (client: number) => void,
): void {
  const rest = arrivals[Symbol.iterator]();
  const planNext = () => {
    const { value, done } = rest.next();
    if (done) return;
    time.at(STARTS_AT + value.atMs, WORLD, () => {
      planNext();
      send(value.client);
    });
  };
  planNext();
}

/** Plans a fixed number of concurrent requests. Each decision plans the next request. */
function planClosed(
  time: VirtualTime,
  { clients, concurrency, handlingMs }: ClosedTraffic,
  send: (client: number, onDecided: () => void) => void,
): void {
  const rest = clients.values();
  const sendNext = () => {
    const { value, done } = rest.next();
    if (!done) send(value, () => time.at(time.now + handlingMs, WORLD, sendNext));
  };
  for (let place = 0; place < concurrency; place++) time.at(STARTS_AT, WORLD, sendNext);
}
