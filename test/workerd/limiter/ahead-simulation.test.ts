import { afterAll, beforeAll, expect, it } from "vitest";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { type Demand, windowAt } from "../../../src/engine/counter.ts";
import type { Decision } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { inTime } from "../../../src/stores/deadline.ts";
import { withDenialCache } from "../../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Answer, type Store, StoreError } from "../../../src/stores/store.ts";
import { randomOf } from "../../suite/random.ts";
import { IS_LONG, SEED } from "../../suite/runs.ts";
import { type VirtualIsolate, VirtualTime } from "../../suite/virtual-time.ts";

// Isolates decide requests under rules with `async`, over one store. Answers are late or get lost, requests are killed,
// isolates end, and clocks step. All time is virtual, and each isolate has a clock of its own.

const TIMEOUT_MS = 1000;
const OUTAGE_MS = 5000;
const HOUR_START = 1_700_002_800_000;
interface Isolate extends VirtualIsolate {
  readonly id: number;
  readonly limiter: Limiter;
}

const time = new VirtualTime<Isolate>();
let restore = () => {};

beforeAll(() => {
  restore = time.install();
});

afterAll(() => restore());

const one = { name: "one", window: "10s", async: true, lease: false } as const;
const RULES: readonly ((limit: number) => ConfigInput["rules"])[] = [
  (limit) => [{ ...one, limit }],
  (limit) => [{ ...one, limit: 20 * limit, lease: "auto" }],
  (limit) => [{ ...one, limit, start: "spread" }],
  (limit) => [{ ...one, limit: 3 * limit, shards: 3 }],
  (limit) => {
    const limits = [
      { limit, window: "5s" },
      { limit: 2 * limit, window: "20s" },
    ] as const;
    return [{ name: "windows", limits, async: true }];
  },
  (limit) => [
    { ...one, limit: 2 * limit },
    { ...one, name: "all", key: "global", limit: 5 * limit, window: "20s" },
  ],
  // Requests pass ahead when a lease of the rule without `async` covers them.
  (limit) => [
    { name: "exact", limit: 40 * limit, window: "20s" },
    { ...one, limit: 2 * limit },
  ],
];

/** A group that a request needs: under each rule one if it passes ahead, otherwise one under all of them. */
interface Entry {
  readonly group: readonly Demand[];
  answer?: Answer;
}

interface Sent {
  readonly isolate: Isolate;
  readonly at: number;
  /** The time on the isolate's clock. */
  readonly ownAt: number;
  readonly entries: Entry[];
  decision?: Decision;
}

/** The circumstances of a seed. Of calls, one in `lost` and one in `killed` have no answer. */
function settingOf(random: (below: number) => number) {
  const oneOf = <Value>(values: readonly Value[]) => values[random(values.length)] as Value;
  return {
    clock: oneOf(["edge", "store"] as const),
    rules: oneOf(RULES)(1 + random(12)),
    places: oneOf([1, 1, 2, 8, 40, 1000]),
    clients: 1 + random(6),
    stepMs: oneOf([0, 3000, 15_000]),
    skewMs: oneOf([0, 50]),
    /** One request in this number comes after its isolate has ended. */
    restarts: oneOf([0, 0, 40]),
    maxCost: oneOf([1, 1, 5]),
    lost: oneOf([0, 0, 5, 50]),
    killed: oneOf([0, 0, 20]),
    slowMs: oneOf([5, 150, 900]),
    outageAt: oneOf([0, HOUR_START + 25_000]),
  };
}

/** Sends the requests of a seed, and returns them with all that became of them. */
async function simulate(seed: number) {
  const random = randomOf(seed);
  for (let warm = 0; warm < 8; warm++) random(2);
  time.now = HOUR_START + random(20_000);
  const setting = settingOf(random);
  const { clock, places, stepMs, skewMs } = setting;
  const happens = (oneIn: number) => oneIn > 0 && random(oneIn) === 0;
  const config = defineConfig({ clock, rules: setting.rules });
  const memory = createMemoryStore();
  const charged = new WeakSet<Demand>();
  let active: Sent | undefined;

  /** Returns the store, behind a network with faults. */
  function connect(isolate: () => Isolate): Store {
    return {
      ...memory,
      decide(groups, given, unused) {
        const [isLost, isKilled] = [happens(setting.lost), happens(setting.killed)];
        const isOut = setting.outageAt <= time.now && time.now < setting.outageAt + OUTAGE_MS;
        const isAnswered = !(isLost || isKilled || isOut);
        const [arrivesIn, answersIn] = [1 + random(setting.slowMs), 1 + random(setting.slowMs)];
        const answers = new Promise<readonly Answer[]>((resolve, reject) => {
          if (isAnswered || (!isOut && happens(2))) {
            time.plan(arrivesIn, undefined, async () => {
              const decided = await Promise.all(memory.decide(groups, given ?? time.now, unused));
              for (const [at, group] of groups.entries()) {
                for (const counter of decided[at]?.admitted ? group : []) charged.add(counter);
              }
              if (isAnswered) time.plan(answersIn, isolate(), () => resolve(decided));
            });
          }
          const refuse = () => reject(new StoreError("unreachable", "no answer"));
          if (isOut || (isLost && happens(2))) time.plan(1 + random(50), isolate(), refuse);
        });
        // When a request is killed, its deadline goes with it.
        const timed = isKilled ? answers : inTime(() => answers, TIMEOUT_MS);
        // A call that only returns quota has no other code that handles its failure.
        timed.catch(() => {});
        return groups.map(async (_, at) => {
          return { ...((await timed)[at] as Answer), fromMemory: false };
        });
      },
    };
  }

  let started = 0;
  function startIsolate(): Isolate {
    const background = () => {};
    const cached = withDenialCache(connect(() => isolate));
    const store = withLeases(cached, { timeoutMs: TIMEOUT_MS, background });
    const watched: Store = {
      denialOf: (...all) => store.denialOf?.(...all),
      stateOf: (...all) => store.stateOf?.(...all) ?? { isCovered: false, tallies: [] },
      adjust: (...all) => store.adjust(...all),
      reset: (...all) => store.reset(...all),
      decide(groups, ...all) {
        const answers = store.decide(groups, ...all);
        for (const [at, group] of groups.entries()) {
          const entry: Entry = { group };
          active?.entries.push(entry);
          const keep = (answer: Answer) => {
            entry.answer = answer;
          };
          answers[at]?.then(keep, () => {});
        }
        return answers;
      },
    };
    const isolate: Isolate = {
      id: started++,
      limiter: new Limiter(config, watched),
      isAlive: true,
      offsetMs: random(2 * skewMs + 1) - skewMs,
    };
    return isolate;
  }

  const isolates = new Map<number, Isolate>();
  const sent: Sent[] = [];
  function send(): void {
    const place = random(places);
    let isolate = isolates.get(place);
    if (!isolate || happens(setting.restarts)) {
      if (isolate) isolate.isAlive = false;
      isolate = startIsolate();
      isolates.set(place, isolate);
    }
    time.current = isolate;
    if (stepMs > 0 && happens(20)) isolate.offsetMs += random(2 * stepMs) - stepMs;
    const client = `client${random(setting.clients)}`;
    const cost = 1 + random(setting.maxCost);
    const applied = config.rules.map((rule) => {
      return { rule, windows: rule.windows, identity: rule.name === "all" ? "all" : client, cost };
    });
    const request: Sent = { isolate, at: time.now, ownAt: Date.now(), entries: [] };
    sent.push(request);
    const draw = random(1000) / 1000;
    active = request;
    const decided = isolate.limiter.decide(applied, { ahead: true, random: () => draw });
    active = undefined;
    decided.then((decision) => {
      request.decision = decision;
    });
  }

  const requests = places > 40 ? 1500 : 500;
  for (let [at, count] = [0, 0]; count < requests; at += random(120)) {
    const together = happens(15) ? random(60) : 1;
    for (let each = 0; each < together; each++) time.plan(at, undefined, send);
    count += together;
  }
  await time.runAll();
  return { setting, sent, charged };
}

/** A client's requests in a window of a rule, in quota. */
class Account {
  charged = 0;
  uncharged = 0;
  /**
   * The highest cost that each isolate has seen. If the store's clock determines the windows, an isolate counts once
   * for each window of its own clock.
   */
  readonly seen = new Map<string, number>();
}

/** Returns what is wrong, and how many requests passed ahead with a charge and without one. */
function audit({ setting, sent, charged }: Awaited<ReturnType<typeof simulate>>) {
  const wrong: string[] = [];
  const passed = { charged: 0, uncharged: 0 };
  const accounts = new Map<string, Account>();
  const limits = new Map<string, number>();
  const { rules } = defineConfig({ rules: setting.rules });
  for (const { name, windows } of rules) {
    for (const { windowMs, limit } of windows) limits.set(`${name} ${windowMs}`, limit);
  }
  const nameOf = ({ key, windowMs }: Demand) => `${key.split(":")[1]} ${windowMs}`;
  const accountOf = (counter: Demand, time: number) => {
    const client = counter.identity.split("#")[0];
    const key = `${nameOf(counter)}, ${client}, ${windowAt(time, counter).endsAt}`;
    const account = accounts.get(key) ?? new Account();
    accounts.set(key, account);
    return account;
  };
  const aheadOf = new Set<string>();
  for (const { isolate, at, ownAt, entries, decision } of sent) {
    // Requests that passed because the store has failed do not count.
    const isAllowed = decision?.outcome === "allowed" && !decision.storeFailure;
    const isAhead = isAllowed && decision.ahead !== undefined;
    for (const { group, answer } of entries) {
      const isDenied = answer && !answer.admitted && !answer.mayHold;
      if (isDenied && group.some((each) => charged.has(each)))
        wrong.push("charged a denied request");
      const isUncharged = isAhead && !answer?.admitted;
      if (isAhead) passed[isUncharged ? "uncharged" : "charged"] += 1;
      if (isUncharged) {
        const longest = group.at(-1) as Demand;
        const { index } = windowAt(ownAt, longest);
        const key = `isolate ${isolate.id}, ${longest.identity.split("#")[0]}, ${nameOf(longest)} ${index}`;
        if (aheadOf.has(key)) wrong.push(`${key}: more than one request without a charge`);
        aheadOf.add(key);
      }
      for (const [index, counter] of group.entries()) {
        const account = accountOf(counter, setting.clock === "edge" ? ownAt : at);
        const by = `${isolate.id} ${windowAt(ownAt, counter).index}`;
        account.seen.set(by, Math.max(account.seen.get(by) ?? 0, counter.cost));
        if (isUncharged) account.uncharged += counter.cost;
        if (!isAllowed || isUncharged || !answer) continue;
        const endsAt = answer.now + (answer.tallies[index]?.resetMs ?? 0);
        accountOf(counter, endsAt - 1).charged += counter.cost;
      }
    }
  }
  for (const [key, account] of accounts) {
    const limit = limits.get(key.split(",")[0] as string) ?? 0;
    const more = [...account.seen.values()].reduce((sum, each) => sum + each, 0);
    if (account.charged > limit || account.charged + account.uncharged > limit + more) {
      const quota = `${account.charged} charged and ${account.uncharged} not`;
      wrong.push(`${key}: ${quota}, limit ${limit} and ${more}`);
    }
  }
  return { wrong, passed };
}

it("a client gets its limit in a window, and one request more for each isolate that it reaches", async () => {
  const wrong: string[] = [];
  const passed = { charged: 0, uncharged: 0 };
  for (let seed = SEED; seed < SEED + (IS_LONG ? 1000 : 80); seed++) {
    const run = await simulate(seed);
    const audited = audit(run);
    const label = `seed ${seed}, ${JSON.stringify(run.setting)}`;
    wrong.push(...audited.wrong.map((each) => `${label}: ${each}`));
    passed.charged += audited.passed.charged;
    passed.uncharged += audited.passed.uncharged;
  }
  expect(wrong).toEqual([]);
  expect(passed.charged).toBeGreaterThan(500);
  expect(passed.uncharged).toBeGreaterThan(500);
}, 900_000);
