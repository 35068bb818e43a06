import { env } from "cloudflare:workers";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { type Config, defineConfig, type QuotaEvent } from "../../src/config/index.ts";
import { countersOf, ruleCountersOf } from "../../src/limiter/counters.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import type { AppliedRule } from "../../src/request/rule-applier.ts";
import { createStore } from "../../src/stores/create-store.ts";
import { withCrossings } from "../../src/stores/crossings.ts";
import { withDenialCache } from "../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";
import type { Store } from "../../src/stores/store.ts";
import { DAY } from "../suite/driver.ts";
import { randomOf } from "../suite/random.ts";
import { IS_LONG, SEED } from "../suite/runs.ts";

// Isolates count requests of many clients over one store. Between rounds of simultaneous requests, clients get quota
// back, counters are reset, idle isolates give their blocks back, and all isolates are replaced. Whatever lowers a
// count, each share is reported once, and a share that is reached at the end of a round has been reported.

const [REQUESTS, CLIENTS, ROUNDS] = IS_LONG ? [10_000, 300, 25] : [600, 40, 6];
const ISOLATES = 8;
const SHARES = [0.3, 0.55, 0.8, 1];
const LIMIT = 60;
/** The whole numbers that reach the shares. */
const QUOTAS = [18, 33, 48, 60];
const TIMEOUT_MS = 30_000;

type OnCrossing = (event: QuotaEvent) => Promise<void>;
interface World {
  /** The store of an isolate. */
  readonly isolate: (onCrossing: OnCrossing) => Store;
  /** The store without leases, to read counts. */
  readonly reader: Store;
}

/** Creates what isolates share: a store with its counters. */
const WORLDS: Readonly<Record<string, (prefix: string) => World>> = {
  memory: () => {
    const reader = createMemoryStore();
    const options = { timeoutMs: TIMEOUT_MS, background: () => {} };
    return {
      reader,
      isolate: (onCrossing) =>
        withLeases(withDenialCache(withCrossings(reader, onCrossing, () => {})), options),
    };
  },
  "Durable Objects": (prefix) =>
    createdBy({ kind: "durable-object", namespace: env.COUNTERS }, prefix),
  Redis: (prefix) => {
    const { restUrl: url, restToken: token } = inject("redis");
    return createdBy({ kind: "upstash", url, token }, prefix);
  },
};

function createdBy(binding: Parameters<typeof createStore>[0], prefix: string): World {
  const options = { clock: "edge", prefix, timeoutMs: TIMEOUT_MS } as const;
  return {
    reader: createStore(binding, options),
    isolate: (onCrossing) => createStore(binding, { ...options, onCrossing }),
  };
}

/** Noon tomorrow. No window ends during a test. */
const START = Math.ceil(Date.now() / DAY) * DAY + DAY / 2;

beforeAll(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: START });
});

afterAll(() => {
  vi.useRealTimers();
});

async function run(createWorld: (prefix: string) => World, lease: "auto" | false) {
  const prefix = crypto.randomUUID();
  const random = randomOf(SEED);
  const world = createWorld(prefix);
  const config: Config = defineConfig({
    prefix,
    rules: [{ name: "plan", limit: LIMIT, window: "1d", notify: SHARES, lease }],
  });
  const rule = config.rules[0] as AppliedRule["rule"];
  const clients = Array.from(
    { length: CLIENTS },
    (_, at): AppliedRule => ({ rule, windows: rule.windows, identity: `client-${at}` }),
  );
  let told: QuotaEvent[] = [];
  const onCrossing = async (event: QuotaEvent) => void told.push(event);
  const options = { clock: "edge", prefix, timeoutMs: TIMEOUT_MS } as const;
  const deploy = () =>
    Array.from({ length: ISOLATES }, () => new Limiter(options, world.isolate(onCrossing)));
  let isolates = deploy();
  const anyOf = <Each>(list: readonly Each[]) => list[random(list.length)] as Each;
  const countsOf = async () => {
    const counters = clients.flatMap((each) =>
      countersOf(ruleCountersOf(each, prefix, { cost: 0 })),
    );
    return (await world.reader.adjust(counters, Date.now())).map(({ count }) => count);
  };
  const figures = { requests: 0, admitted: 0, told: 0, lowered: 0, inBlocks: 0 };
  const everTold = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const used = await countsOf();
    const requests = Array.from({ length: REQUESTS / ROUNDS }, async () => {
      // Some clients are much busier than others, and each is busy in two isolates.
      const client = Math.floor((random(1000) / 1000) ** 3 * CLIENTS);
      const isolate = isolates[(client + random(2)) % ISOLATES] as Limiter;
      const cost = random(4) === 0 ? 1 + random(30) : 1;
      const decision = await isolate.decide([clients[client] as AppliedRule], { cost });
      figures.requests += 1;
      expect(decision.outcome).not.toBe("undecided");
      if (decision.outcome !== "allowed") return;
      figures.admitted += 1;
      used[client] = Number(used[client]) + cost;
    });
    await Promise.all(requests);
    // Blocks may be fetched after the answers.
    await new Promise((resolve) => setTimeout(resolve, 20));
    const counts = await countsOf();
    const reached = counts.flatMap((count, at) =>
      SHARES.filter((_, index) => count >= (QUOTAS[index] as number)).map(
        (share) => `${clients[at]?.identity} ${share}`,
      ),
    );
    // What was told is counted with a call of its own, after the answers.
    await expect
      .poll(() => {
        const known = new Set([...everTold, ...told.map((each) => `${each.client} ${each.share}`)]);
        return reached.filter((each) => !known.has(each));
      })
      .toEqual([]);
    for (const { client, share, used: count } of told) {
      expect(count).toBeGreaterThanOrEqual(QUOTAS[SHARES.indexOf(share)] as number);
      expect(everTold).not.toContain(`${client} ${share}`);
      everTold.add(`${client} ${share}`);
      figures.told += 1;
    }
    told = [];
    figures.lowered += everTold.size - reached.length;
    for (const [at, count] of counts.entries()) {
      // Without leases, the requests that passed are exactly what the store has counted.
      if (lease === false) expect(count).toBe(used[at]);
      figures.inBlocks += count - (used[at] as number);
    }
    for (let each = 0; each < CLIENTS / 20; each++) {
      await anyOf(isolates).refund(anyOf(clients), 1 + random(40));
      await anyOf(isolates).clients.reset(anyOf(clients));
    }
    if (round === Math.floor(ROUNDS / 3) || round === Math.floor((2 * ROUNDS) / 3))
      isolates = deploy();
    expect(told).toEqual([]);
    // An isolate gives the block of an idle client back with its next call.
    vi.setSystemTime(Date.now() + (round % 2 === 0 ? 100 : 6000));
  }
  return figures;
}

describe.each(Object.keys(WORLDS))("isolates over %s", (name) => {
  it.each(["auto", false] as const)(
    "tell each share exactly once, and none before it is reached: lease %s",
    async (lease) => {
      const figures = await run(WORLDS[name] as (prefix: string) => World, lease);
      expect(figures.requests).toBe(REQUESTS);
      expect(figures.told).toBeGreaterThan(CLIENTS / 3);
      expect(figures.lowered).toBeGreaterThan(0);
      if (lease) expect(figures.inBlocks).toBeGreaterThan(0);
      if (IS_LONG) console.info(JSON.stringify({ name, lease, ...figures }));
    },
    600_000,
  );
});
