import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { LogFacts, LogRequest } from "../../cli/logs/log-request.ts";
import { ReplayEngine } from "../../cli/replay/engine.ts";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import type { Config } from "../../src/config/schema.ts";
import { adjustGroup } from "../../src/engine/fixed-window.ts";
import type { Clients } from "../../src/limiter/clients.ts";
import { allCountersOf, allWindowsOf, countersOf } from "../../src/limiter/counters.ts";
import type { AppliedRule } from "../../src/request/rule-applier.ts";
import { runs, SEED } from "../suite/runs.ts";

const tasks = vi.hoisted((): Promise<unknown>[] => []);

vi.mock("cloudflare:workers", () => ({
  waitUntil: (task: Promise<unknown>) => void tasks.push(task),
  RpcTarget: class {},
  WorkerEntrypoint: class {},
  DurableObject: class {},
}));

/** The parts of a Worker that the test needs. */
interface Modules {
  weir(config: Config): {
    fetch(
      request: Request,
      env: object,
      ctx: object,
      next: () => Promise<Response>,
    ): Promise<Response>;
  };
  findServiceRule(
    config: Config,
    env: object,
    rule: string,
    options: object,
  ): Promise<{ configured: AppliedRule; limiter: { clients: Clients } }>;
}

// The types of Workers are not known here, so the compiler must not follow these imports.
const paths = ["../../src/entry/weir.ts", "../../src/service/rule.ts"];
const { weir, findServiceRule }: Modules = Object.assign(
  {},
  ...(await Promise.all(paths.map((path) => import(path)))),
);

/** Waits for the tasks that run after the response. */
async function settle(): Promise<void> {
  while (tasks.length > 0) await tasks.shift();
}

/** 2023-11-14T22:15:00Z, the beginning of a minute, but not of an hour. */
const NOW = 1_700_000_100_000;
const IP = "203.0.113.7";
const KEY = { key: { ip: IP } } as const;

beforeAll(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  vi.spyOn(Math, "random").mockReturnValue(0);
  for (const level of ["log", "error"] as const) vi.spyOn(console, level).mockReturnValue();
});
afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** The parts of a request in the log, and its response. */
interface Sent {
  readonly afterMs: number;
  readonly status: number;
  readonly cost: number;
  readonly tier: string;
}

/** Requests that exceed every limit below many times, over ten hours. */
const REQUESTS: readonly Sent[] = Array.from({ length: 120 }, (_, index) => ({
  afterMs: [0, 7_000, 31_000, 0, 61_000, 1_200_000][index % 6] as number,
  status: index % 5 === 4 ? 200 : 401,
  cost: [3, 1, 0, 7, 2, 12, 1][index % 7] as number,
  tier: index % 40 < 20 ? "pro" : "none",
}));

const LIMITS: Record<string, object> = {
  "a plain limit": { limit: 6, window: "1h" },
  "unused quota that rolls over": { limit: 3, window: "1h", capacity: 20 },
  "a ban": { limit: 6, window: "1m", ban: "30m" },
  "bans that become longer": { limit: 6, window: "1m", ban: ["1m", "1h"] },
  "several windows": {
    limits: [
      { limit: 4, window: "1m" },
      { limit: 9, window: "1h", capacity: 30 },
    ],
  },
  tiers: {
    limit: 3,
    window: "1h",
    capacity: 10,
    tiers: { by: "header:x-tier", limits: { pro: { limit: 9, window: "1h", capacity: 40 } } },
  },
  shards: { limit: 12, window: "1h", capacity: 24, shards: 3 },
};

const CHARGES: Record<string, object> = {
  "by statuses": { count: { status: [401] } },
  "by statuses, with a reserve": { count: { status: [401], reserve: true } },
  "by a header field": { cost: "header:x-cost" },
  "by a header field, with a reserve": { cost: { reserve: 4, settle: "header:x-cost" } },
  "by a function": { cost: { settle: "custom:used" } },
  "by a function, with a reserve": { cost: { reserve: 4, settle: "custom:used" } },
};

const MODES: Record<string, object> = {
  enforce: { mode: "enforce" },
  shadow: { mode: "shadow" },
  mark: { mode: "mark" },
  "mark with tellOrigin": { mode: "mark", tellOrigin: true },
};

/** Another enforced rule, which never denies, so that the trial is a group of its own. */
const OTHER = { name: "other", limit: 1_000_000, window: "1h" } as const;

function configOf(rule: object, isAlone: boolean): Config {
  const trial = { name: "trial", key: "ip", ...rule };
  return defineConfig({
    store: "memory",
    prefix: crypto.randomUUID(),
    rules: isAlone ? [trial] : [OTHER, trial],
    custom: {
      settle: { used: (response: Response) => Number(response.headers.get("x-cost")) },
    },
  } as unknown as ConfigInput);
}

/** Sends the requests through a Worker. @returns the counts after each request */
async function countsOfGateway(config: Config, bindings = {}): Promise<number[][]> {
  vi.setSystemTime(NOW);
  const { fetch } = weir(config);
  const { configured, limiter } = await findServiceRule(config, bindings, "trial", KEY);
  const applied = { ...configured, windows: allWindowsOf(configured.rule) };
  const counts: number[][] = [];
  for (const { afterMs, status, cost, tier } of REQUESTS) {
    vi.setSystemTime(Date.now() + afterMs);
    const ctx = { waitUntil: (task: Promise<unknown>) => void tasks.push(task) };
    const request = new Request("https://api.example.com/", {
      headers: { "cf-connecting-ip": IP, "x-tier": tier },
    });
    const response = await fetch(request, bindings, ctx, async () => {
      return new Response("", { status, headers: { "x-cost": `${cost}` } });
    });
    await response.text();
    await settle();
    const [state] = await limiter.clients.read([applied]);
    counts.push((state?.counters ?? []).map(({ tally }) => tally.count));
  }
  return counts;
}

/** A log that states everything. */
const FACTS: LogFacts = Object.assign(new Set<string>(), { has: () => true });

/** Replays the requests. @returns the counts after each request */
function countsOfReplay(config: Config): number[][] {
  const engine = new ReplayEngine(config, FACTS, false, () => 0);
  const rule = config.rules.find(({ name }) => name === "trial") as AppliedRule["rule"];
  let at = NOW;
  return REQUESTS.map(({ afterMs, status, cost, tier }) => {
    at += afterMs;
    const request: LogRequest = {
      ...{ at, method: "GET", target: "/", host: "api.example.com", ip: IP, status },
      headers: new Map([["x-tier", tier]]),
      responseHeaders: new Map([["x-cost", `${cost}`]]),
    };
    engine.decide(request, () => {});
    const client = engine.apply(request)?.find((each) => each.rule === rule);
    const identity = client?.ruleCounters[0]?.appliedRule.identity as string;
    const all = allCountersOf({ rule, windows: allWindowsOf(rule), identity }, config.prefix);
    const { tallies } = adjustGroup(countersOf(all), at, (key) => engine.rows.read(key, at));
    return tallies.map(({ count }) => count);
  });
}

/** A third of the pairs with every limit and every charge, or all pairs in `npm run test:long`. */
const PAIRS = Object.entries(LIMITS).flatMap(([limit, limits], row) =>
  Object.entries(CHARGES)
    .filter((_, column) => runs(10) === 10 || (row + column + SEED) % 3 === 0)
    .map(([charge, charged]) => ({ limit, limits, charge, charged })),
);

describe.each(PAIRS)(
  "a rule with $limit that is charged $charge",
  ({ limits, charge, charged }) => {
    // A rule with a ban cannot have the mode mark.
    const modes = Object.entries(MODES).filter(([mode]) => !("ban" in limits && /mark/.test(mode)));

    const rule = { ...limits, ...charged };
    let enforced: readonly number[][] = [];
    beforeAll(async () => {
      enforced = await countsOfGateway(configOf(rule, true));
      expect(Math.max(...enforced.flat())).toBeGreaterThan(0);
    });

    it.each(modes)("counts the same in every mode: %s", async (_mode, mode) => {
      for (const isAlone of [true, false]) {
        const config = configOf({ ...rule, ...mode }, isAlone);
        expect(await countsOfGateway(config)).toEqual(enforced);
        if (!charge.includes("function")) expect(countsOfReplay(config)).toEqual(enforced);
      }
    });
  },
);
