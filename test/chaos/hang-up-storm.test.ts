import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hangUp, type WayToHangUp } from "../../dev/hang-up.ts";
import type { ConfigInput } from "../../src/config/index.ts";
import { type Answer, send } from "../node/support/client.ts";
import { limitsOf } from "../node/support/quota-fields.ts";
import { REMOTE_STORES, useServers } from "../node/support/servers.ts";
import { type RunningWorker, startWorker } from "../node/support/worker.ts";
import { runs } from "../suite/runs.ts";

const SEED = 20_261_121;
const CUTS = runs(4000);
/** The number of loops that run at the same time. Each loop sends requests and cuts them off. */
const AT_ONCE = 12;
/**
 * The longest time until a client hangs up, as a multiple of the usual answer time. It is above 1,
 * so that some clients get their answer.
 */
const LONGEST_STAY = 1.3;
const LATENCY_MS = 10;

const CUTTERS = addresses("198.51.100", 6);
const HONEST = addresses("203.0.113", 4);
const ALL = [...CUTTERS, ...HONEST];

/** The limits of the rules. The storm uses up those of `client` and `everyone`. */
const LIMITS = { client: 10, everyone: 60, leased: 120, failed: 5000 };
const window = "52w";
const onError = "closed";
const RULES: ConfigInput["rules"] = [
  { name: "client", match: { paths: ["/pair", "/own"] }, limit: LIMITS.client, window, onError },
  {
    name: "everyone",
    match: { paths: ["/pair"] },
    key: "global",
    limit: LIMITS.everyone,
    window,
    onError,
  },
  { name: "leased", match: { paths: ["/leased"] }, limit: LIMITS.leased, window, onError },
  {
    name: "failed",
    match: { paths: ["/failed"] },
    limit: LIMITS.failed,
    window,
    onError,
    count: { status: [401] },
  },
];
const PATHS = ["/pair", "/leased", "/failed"] as const;

const servers = useServers();

beforeAll(async () => {
  const { origin, rest } = servers;
  origin.on("/failed", (_, response) => setTimeout(() => response.writeHead(401).end(), 5));
  await rest.inject({ answer: (_request, _response, pass) => setTimeout(pass, LATENCY_MS) });
});

function addresses(network: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${network}.${index + 1}`);
}

/**
 * Creates a generator of random numbers from 0 to 1, which are the same in each run. It is a linear
 * congruential generator.
 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

function pick<Value>(values: readonly Value[], random: () => number): Value {
  return values[Math.floor(random() * values.length)] as Value;
}

describe.each(REMOTE_STORES)("a storm of hang-ups over %s", (store) => {
  let worker: RunningWorker;
  /** The number of requests that the origin received before the storm. */
  let seenBefore = 0;
  /** The number of requests that were cut off, by path and client. */
  const cut = new Map<string, number>();
  /** The answers to requests that were not cut off, by path and client. */
  const answers = new Map<string, Answer[]>();

  beforeAll(async () => {
    seenBefore = servers.origin.received.length;
    worker = await startWorker({
      config: { store, rules: RULES, timeoutMs: 10_000, prefix: `storm-${randomUUID()}` },
      vars: servers.varsFor(store),
    });
    await storm();
  }, 180_000);

  afterAll(() => worker.stop());

  async function see(path: string, client: string): Promise<Answer> {
    const headers = { "CF-Connecting-IP": client };
    const answer = await send(worker.url, path, { headers });
    const own = answers.get(path + client) ?? [];
    answers.set(path + client, [...own, answer]);
    return answer;
  }

  /**
   * Returns the median time of an answer under the load of the storm, in milliseconds. This time
   * depends on the machine, so the test measures it.
   */
  async function answerMs(): Promise<number> {
    const tookMs: number[] = [];
    const path = "/no-rule";
    async function asking(): Promise<void> {
      for (let times = 0; times < 5; times++) {
        const sentAt = performance.now();
        await Promise.all([send(worker.url, path), send(worker.url, "/failed")]);
        tookMs.push(performance.now() - sentAt);
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE / 2 }, asking));
    return tookMs.toSorted((a, b) => a - b)[tookMs.length / 2] as number;
  }

  async function storm(): Promise<void> {
    const random = randomOf(SEED);
    const usualMs = await answerMs();
    let left = CUTS;
    async function cutting(): Promise<void> {
      while (left-- > 0) {
        const [path, client] = [pick(PATHS, random), pick(CUTTERS, random)];
        const way: WayToHangUp = random() < 0.7 ? "reset" : "end";
        cut.set(path + client, (cut.get(path + client) ?? 0) + 1);
        const headers = { "CF-Connecting-IP": client };
        const when = random() * usualMs * LONGEST_STAY;
        // Each round of this loop takes at least as long as an answer, so that the test does not
        // overload the machine.
        await Promise.all([hangUp(worker.url, { path, headers }, { way, when }), delay(usualMs)]);
      }
    }
    let isOver = false;
    const honest = HONEST.map(async (client) => {
      while (!isOver) for (const path of PATHS) await see(path, client);
    });
    await Promise.all(Array.from({ length: AT_ONCE }, cutting));
    isOver = true;
    await Promise.all(honest);
    // The Worker may still decide the last requests that were cut off. So the test sends one more
    // request for each path, which gets its answer after those decisions.
    for (const path of PATHS) await see(path, HONEST[0] as string);
  }

  /** @returns how many requests for this path reached the origin */
  function worked(path: string, client?: string): number {
    return servers.origin.received.slice(seenBefore).filter(({ url, headers }) => {
      return url === path && (client === undefined || headers["cf-connecting-ip"] === client);
    }).length;
  }

  const admitted = (path: string, client: string) =>
    (answers.get(path + client) ?? []).filter(({ status }) => status !== 429).length;

  /**
   * Sends a request. Returns, for each rule of the path, the quota that was used before this
   * request.
   */
  async function used(path: string, client: string): Promise<Record<string, number>> {
    const { headers, status } = await see(path, client);
    const own = status === 429 || path === "/failed" ? 0 : 1;
    return Object.fromEntries(
      limitsOf(headers).map(({ name, r }) => {
        return [name, LIMITS[name as keyof typeof LIMITS] - Number(r) - own];
      }),
    );
  }

  it("admits no client more often than its limit", () => {
    for (const client of ALL) {
      expect(worked("/pair", client)).toBeLessThanOrEqual(LIMITS.client);
      expect(worked("/leased", client)).toBeLessThanOrEqual(LIMITS.leased);
    }
    expect(worked("/pair")).toBeLessThanOrEqual(LIMITS.everyone);
  });

  it("decides every request of an honest client, and denies none while quota is left", async () => {
    const all = HONEST.flatMap((client) =>
      PATHS.flatMap((path) => answers.get(path + client) ?? []),
    );
    // Each honest client has sent at least one request to each path.
    expect(all.length).toBeGreaterThanOrEqual(HONEST.length * PATHS.length);
    for (const { status, headers } of all) {
      expect([200, 401, 429]).toContain(status);
      expect(headers.ratelimit).toBeDefined();
    }
    for (const client of HONEST) {
      const sent = (answers.get(`/leased${client}`) ?? []).length;
      expect(admitted("/leased", client)).toBe(Math.min(sent, LIMITS.leased));
    }
  });

  it("charges no more quota than the cut requests cost", async () => {
    let taken = 0;
    let everyone = 0;
    for (const client of ALL) {
      const before = admitted("/pair", client);
      const pair = await used("/pair", client);
      // A denial by the other rule may come from memory, so it does not show this count exactly.
      const own = (await used("/own", client)).client as number;
      pair.client = own - (lastWasAdmitted("/pair", client) ? 1 : 0);
      const most = (cut.get(`/pair${client}`) ?? 0) + before;
      expect(pair.client).toBeLessThanOrEqual(Math.min(most, LIMITS.client));
      if (HONEST.includes(client)) expect(pair.client).toBe(before);
      everyone = pair.everyone as number;
      taken += pair.client as number;
    }
    // Each request charges both rules or none. `everyone` comes from the last call to `used`, so it includes the
    // requests of earlier calls. `probes` is the number of these requests that were admitted.
    const probes = ALL.slice(0, -1).filter((client) => lastWasAdmitted("/pair", client)).length;
    expect(everyone).toBe(taken + probes);
    for (const client of ALL) {
      const before = admitted("/leased", client);
      const { leased } = await used("/leased", client);
      const most = (cut.get(`/leased${client}`) ?? 0) + before;
      expect(leased).toBeLessThanOrEqual(Math.min(most, LIMITS.leased));
      if (HONEST.includes(client)) expect(leased).toBe(before);
    }
  });

  function lastWasAdmitted(path: string, client: string): boolean {
    return answers.get(path + client)?.at(-1)?.status === 200;
  }

  it("charges each response that the origin sent", async () => {
    for (const client of ALL) {
      const { failed } = await used("/failed", client);
      expect(failed).toBe(worked("/failed", client));
    }
  });

  it("logs nothing but denials", () => {
    // The runtime warns if a client has gone while its request waited for another one's block (leases.ts). Such a
    // request has charged nothing, and its rest is dropped.
    const known =
      /^log: (\{"weir":"denied(-omitted)?",|Warning: A promise was resolved or rejected from a different)/;
    expect(worker.logs().filter((line) => !known.test(line))).toEqual([]);
  });
});
