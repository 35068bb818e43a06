import { defineConfig } from "../../src/config/define.ts";
import type { Rule } from "../../src/config/rule.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import type { AppliedRule } from "../../src/request/rule-applier.ts";
import type { Store } from "../../src/stores/store.ts";
import { randomOf } from "./random.ts";

// Clients open and close requests under `concurrent`, while the calls to the store have a fault for some seconds. All
// time is virtual. A slot that nobody has must not stay taken after the fault.

export const TIMEOUT_MS = 1000;

/**
 * The faults of calls to a store.
 *
 * - `slow`: 1.2 s in all
 * - `late`: carried out up to 1.8 s after the call was sent, often after its caller has given up
 * - `lost call`: never carried out
 * - `lost answer`: carried out, but the caller gets an error or no answer
 * - `mixed`: one of these at random
 */
const CALL_FAULTS = ["slow", "late", "lost call", "lost answer", "mixed"] as const;
type CallFault = (typeof CALL_FAULTS)[number];

/** A store with faults. */
export interface World {
  /** Creates the store of one isolate, whose calls pass through the network. */
  readonly createStore: (net: Network, prefix: string) => Store;
  /** Further faults of this store: functions that begin them and return a function that ends them. */
  readonly faults?: Readonly<Record<string, () => Promise<() => Promise<void>>>>;
  /** The further faults that lose open slots, so that a client can have too many. */
  readonly forgets?: readonly string[];
  /** Passes virtual time. */
  readonly pass: (ms: number) => Promise<void>;
}

const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Carries calls to a store, in virtual time. */
export class Network {
  fault: CallFault | undefined;
  readonly #random: (below: number) => number;

  constructor(random: (below: number) => number) {
    this.#random = random;
  }

  /** @param fails makes the error of a call whose connection breaks */
  async call<Result>(action: () => Promise<Result>, fails: () => unknown): Promise<Result> {
    const random = this.#random;
    const kind = this.fault === "mixed" ? CALL_FAULTS[random(CALL_FAULTS.length - 1)] : this.fault;
    // Some calls have no fault.
    const fault = random(5) > 0 ? kind : undefined;
    const lose = async () => {
      // A call without an answer ends long after its deadline.
      if (random(2) === 0) await delay(30 * TIMEOUT_MS);
      throw fails();
    };
    await delay(fault === "slow" ? 600 : fault === "late" ? 200 + random(1600) : 5 + random(20));
    if (fault === "lost call") await lose();
    const result = await action();
    await delay(fault === "slow" ? 600 : 5 + random(20));
    if (fault === "lost answer") await lose();
    return result;
  }
}

interface Client {
  readonly name: string;
  readonly concurrent: number;
  open: number;
}

const PREFIX = "simulated";

/** Returns the configuration of a seed: slots, and in some seeds a limit of all clients in another object. */
function configOf(concurrent: number, hasLimit: boolean) {
  return defineConfig({
    prefix: PREFIX,
    timeoutMs: TIMEOUT_MS,
    clock: "edge",
    rules: [
      { name: `slots-${concurrent}`, concurrent, maxDuration: "5m" },
      ...(hasLimit ? [{ name: "all", key: "global", limit: 100_000, window: "1h" } as const] : []),
    ],
  });
}

/** An isolate: a store with its memory, and a limiter for the rules of each client. */
class Isolate {
  readonly limiter: Limiter;

  constructor(store: Store, prefix: string, tasks: Set<Promise<unknown>>) {
    const background = (task: Promise<unknown>) => {
      tasks.add(task);
      void task.finally(() => tasks.delete(task));
    };
    this.limiter = new Limiter({ clock: "edge", prefix, timeoutMs: TIMEOUT_MS }, store, {
      background,
    });
  }
}

/** Runs one seed. @returns what is wrong; nothing if no slot is taken that nobody has, and no client has too many */
export async function simulate(world: World, seed: number): Promise<string[]> {
  const random = randomOf(seed);
  for (let warm = 0; warm < 8; warm++) random(2);
  const net = new Network(random);
  const prefix = `${PREFIX}-${seed}-${random(1e6)}`;
  const tasks = new Set<Promise<unknown>>();
  const isolates = Array.from(
    { length: 1 + random(2) },
    () => new Isolate(world.createStore(net, prefix), prefix, tasks),
  );
  const hasLimit = random(3) === 0;
  const clients = Array.from({ length: 3 + random(10) }, (_, at): Client => {
    return { name: `client${at}`, concurrent: 1 + random(3), open: 0 };
  });
  const rulesOf = new Map<number, readonly Rule[]>();
  for (const { concurrent } of clients) {
    rulesOf.set(concurrent, configOf(concurrent, hasLimit).rules);
  }
  const appliedTo = ({ name, concurrent }: Client): AppliedRule[] =>
    (rulesOf.get(concurrent) ?? []).map((rule) => ({
      rule,
      windows: rule.windows,
      identity: rule.name === "all" ? "global" : name,
    }));
  const wrong: string[] = [];
  let mayExceed = false;

  const request = async (client: Client, openMs: number, isolate = isolates[0] as Isolate) => {
    const decision = await isolate.limiter.decide(appliedTo(client));
    if (decision.outcome !== "allowed") return decision.outcome;
    client.open += 1;
    if (client.open > client.concurrent && !mayExceed) wrong.push(`${client.name} has too many`);
    decision.slots?.keep();
    await delay(openMs);
    client.open -= 1;
    decision.slots?.release();
    return "allowed";
  };

  const names = [...CALL_FAULTS, ...Object.keys(world.faults ?? {})];
  const fault = names[random(names.length)] as string;
  const beginsAt = random(1000);
  const endsAt = beginsAt + 500 + random(3500);
  const running: Promise<unknown>[] = [];
  let endFault = async () => {};
  for (let at = 0; at < endsAt + 1000; at += 50) {
    if (at <= beginsAt && beginsAt < at + 50) {
      const begin = world.faults?.[fault];
      if (begin) endFault = await begin();
      else net.fault = fault as CallFault;
      mayExceed = world.forgets?.includes(fault) ?? false;
    }
    if (at <= endsAt && endsAt < at + 50) {
      net.fault = undefined;
      await endFault();
    }
    for (const client of clients) {
      if (random(8) > 0) continue;
      running.push(request(client, random(1200), isolates[random(isolates.length)]));
    }
    await world.pass(50);
  }

  // A few requests of another client follow, because an isolate does lost returns after its decisions.
  const other: Client = { name: "other", concurrent: 1, open: 0 };
  rulesOf.set(1, configOf(1, hasLimit).rules);
  for (let at = 0; at < 3 * TIMEOUT_MS + 4000; at += 250) {
    for (const isolate of isolates) running.push(request({ ...other }, 20, isolate));
    await world.pass(250);
  }
  const label = `seed ${seed}, ${fault}`;
  await settled(world, Promise.all(running), wrong);

  for (const client of clients) {
    const { limiter } = isolates[0] as Isolate;
    const states = limiter.clients.read(appliedTo(client).slice(0, 1));
    const [state] = (await settled(world, states, wrong)) ?? [];
    const [quota] = state?.quotas ?? [];
    const taken = (quota?.limit ?? 0) - (quota?.remaining ?? 0);
    if (taken > 0) wrong.push(`${taken} of ${client.concurrent} slots of ${client.name} are taken`);
    mayExceed = true;
    const all = Array.from({ length: client.concurrent + 1 }, () => request(client, 500));
    const outcomes = (await settled(world, Promise.all(all), wrong)) ?? [];
    const allowed = outcomes.filter((outcome) => outcome === "allowed").length;
    if (allowed !== client.concurrent) {
      wrong.push(`${client.name} opened ${allowed} of ${client.concurrent}: ${outcomes}`);
    }
  }
  return wrong.map((each) => `${label}: ${each}`);
}

/**
 * Passes virtual time until a promise has settled.
 *
 * @returns its value; undefined if it rejects
 */
async function settled<Result>(
  world: World,
  promise: Promise<Result>,
  wrong: string[],
): Promise<Result | undefined> {
  let outcome: { result?: Result } | undefined;
  promise.then(
    (result) => {
      outcome = { result };
    },
    (error) => {
      outcome = {};
      wrong.push(`a call fails after the fault: ${error}`);
    },
  );
  for (let step = 0; step < 400 && !outcome; step++) await world.pass(25);
  if (!outcome) wrong.push("a call never ends");
  return outcome?.result;
}
