import type { Counter } from "../../src/engine/counter.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";
import type { Verdict } from "../../src/stores/store.ts";
import { StoreError } from "../../src/stores/store-error.ts";
import { WORLD } from "./actor.ts";
import { audit, type Figures, noFigures } from "./figures.ts";
import { Fleet } from "./fleet.ts";
import { Ledger } from "./ledger.ts";
import { Network } from "./network.ts";
import { Random, seedOf } from "./random.ts";
import { type Request, traced } from "./request.ts";
import type { Scenario } from "./scenario.ts";
import type { Arrival, ClosedTraffic } from "./traffic.ts";
import { VirtualTime } from "./virtual-time.ts";

/** Where windows of all lengths up to a day begin: midnight of 2026-01-01 UTC. */
const STARTS_AT = Date.UTC(2026, 0, 1);

/** Runs a scenario once. The same seed gives the same figures. */
export async function simulate(scenario: Scenario, seed: number): Promise<Figures> {
  const time = new VirtualTime(STARTS_AT);
  const random = (purpose: string) => new Random(seed, purpose);
  const figures = noFigures();
  const ledger = new Ledger(counterOf(scenario, 0));
  const store = createMemoryStore(Number.POSITIVE_INFINITY);
  const network = new Network(time, store, ledger, random("network"), scenario);
  const fleet = new Fleet(time, random("fleet"), scenario, (isolate) => network.from(isolate));

  function request(client: number, onDecided: () => void = () => {}): void {
    const isolate = fleet.isolateFor(client);
    const request: Request = { client, isolate, at: time.now, call: undefined };
    time.continueAs(isolate);
    figures.offered++;
    isolate.waiting++;
    const counter = traced(counterOf(scenario, client), request);
    isolate.store
      .decide([[counter]])
      .then(
        (verdict) => settle(request, verdict),
        (error) => {
          if (!(error instanceof StoreError)) throw error;
          figures.undecided++;
        },
      )
      .then(() => {
        isolate.waiting--;
        figures.waits.push(time.now - request.at);
        onDecided();
      })
      .catch((error) => time.fail(error));
  }

  function settle(request: Request, verdict: Verdict): void {
    if (verdict.groups[0]?.admitted) figures.admitted++;
    ledger.decided(request, verdict, time.now);
  }

  const traffic = await scenario.traffic(random("traffic"));
  if (traffic.kind === "closed") {
    startClosed(time, traffic, request);
  } else {
    startOpen(time, traffic.arrivals, request);
    fleet.dieUntil(STARTS_AT + traffic.durationMs);
  }
  await time.run();

  const countOf = async (client: number, at: number) => {
    const asking = { ...counterOf(scenario, client), cost: 0 };
    const { groups } = await store.decide([[asking]], at);
    return groups[0]?.tallies[0]?.count ?? 0;
  };
  await audit(figures, ledger, scenario.limit, countOf);
  return { ...figures, lost: fleet.lost };
}

/** As many runs as the scenario has, in one. */
export async function simulateRuns(scenario: Scenario, seed: number): Promise<Figures[]> {
  const all: Figures[] = [];
  for (let run = 0; run < scenario.runs; run++) {
    all.push(await simulate(scenario, seedOf(seed, `${scenario.name}, run ${run}`)));
  }
  return all;
}

function counterOf({ limit, windowMs }: Scenario, client: number): Counter {
  return {
    key: `weir:simulated:${windowMs}:${client}`,
    identity: `${client}`,
    limit,
    windowMs,
    offsetMs: 0,
    cost: 1,
    ceiling: limit,
    leasable: true,
  };
}

/** Each request plans the next one. */
function startOpen(
  time: VirtualTime,
  arrivals: Iterable<Arrival>,
  request: (client: number) => void,
): void {
  const rest = arrivals[Symbol.iterator]();
  const planNext = () => {
    const { value, done } = rest.next();
    if (done) return;
    time.at(STARTS_AT + value.atMs, WORLD, () => {
      planNext();
      request(value.client);
    });
  };
  planNext();
}

function startClosed(
  time: VirtualTime,
  { clients, concurrency, handlingMs }: ClosedTraffic,
  request: (client: number, onDecided: () => void) => void,
): void {
  const rest = clients.values();
  const next = () => {
    const { value, done } = rest.next();
    if (!done) request(value, () => time.at(time.now + handlingMs, WORLD, next));
  };
  for (let place = 0; place < concurrency; place++) time.at(STARTS_AT, WORLD, next);
}
