/**
 * `npm run bench:boundary`: how many requests of one client pass around the boundary of a window, in Weir and in
 * `@upstash/ratelimit`, with real Redis. All times are given to the limiters, so nothing waits for a window.
 */

import { pathToFileURL } from "node:url";
import { Ratelimit } from "@upstash/ratelimit";
import { Redis } from "@upstash/redis/cloudflare";
import { startRedis } from "../../dev/redis.ts";
import { startUpstashRest } from "../../dev/upstash-rest.ts";
import type { Demand } from "../../src/engine/counter.ts";
import { createUpstashStore } from "../../src/stores/upstash/upstash-store.ts";
import { table } from "../report/format.ts";
import { Random } from "../simulation/random.ts";

const MINUTE_MS = 60_000;
const LIMIT = 60;
/** The attacker tries again after this time. */
const STEP_MS = 250;
/** A moment at which a window begins. */
const START = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;

/** Asks a limiter whether a client's request passes at a time. */
type Ask = (client: string, now: number) => Promise<boolean>;

export interface BoundaryRow {
  readonly title: string;
  /** The requests that pass of 5 at 00:58 and 5 at 01:02, with a limit of 5 in a minute. */
  readonly boundary: number;
  /** The most requests in any interval of a minute that pass with random arrivals, with a limit of 60 in a minute. */
  readonly random: number;
  /** The same for a client that spends its limit at some moment, and then sends as soon as the limiter lets it. */
  readonly attacker: number;
  /** The requests that pass in a minute on average if the client sends one in each second. */
  readonly even: number;
}

interface Search {
  readonly randomRuns: number;
  /** The attacker begins late in these seconds of a window. */
  readonly attacksAt: readonly number[];
  readonly evenMinutes: number;
}

/** Returns the largest number of times in an interval of a minute. The times are in order. */
export function mostInAnyMinute(times: readonly number[]): number {
  let [most, first] = [0, 0];
  for (const [last, time] of times.entries()) {
    while ((times[first] as number) <= time - MINUTE_MS) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** @returns the times of the requests that passed */
async function admittedOf(ask: Ask, times: readonly number[]): Promise<number[]> {
  const client = crypto.randomUUID();
  const admitted: number[] = [];
  for (const time of times) if (await ask(client, START + time)) admitted.push(time);
  return admitted;
}

/** Returns the times of requests for three minutes: single ones and bursts, at short and long distances. */
function randomTimes(random: Random): number[] {
  const times: number[] = [];
  for (
    let at = 0;
    at < 3 * MINUTE_MS;
    at += random.exponential(random.chance(0.1) ? 20_000 : 400)
  ) {
    const burst = random.chance(0.05) ? random.below(LIMIT) : 1;
    for (let count = 0; count < burst; count++) times.push(Math.floor(at));
  }
  return times;
}

async function attack(ask: Ask, beginsAt: number): Promise<number[]> {
  const client = crypto.randomUUID();
  const admitted: number[] = [];
  for (let at = beginsAt; at < beginsAt + 2 * MINUTE_MS; at += STEP_MS) {
    while (await ask(client, START + at)) admitted.push(at);
  }
  return admitted;
}

async function rowOf(title: string, create: (limit: number) => Ask, search: Search) {
  const five = (at: number) => Array.from({ length: 5 }, () => at);
  const ask = create(LIMIT);
  const random = new Random(1, "boundary");
  const row = { title, boundary: 0, random: 0, attacker: 0, even: 0 };
  row.boundary = (await admittedOf(create(5), [...five(58_000), ...five(62_000)])).length;
  for (let run = 0; run < search.randomRuns; run++) {
    const admitted = await admittedOf(ask, randomTimes(random));
    row.random = Math.max(row.random, mostInAnyMinute(admitted));
  }
  for (const second of search.attacksAt) {
    const admitted = await attack(ask, second * 1000 + 3 * STEP_MS);
    row.attacker = Math.max(row.attacker, mostInAnyMinute(admitted));
  }
  // No request is exactly at a boundary.
  const seconds = Array.from({ length: search.evenMinutes * 60 }, (_, at) => at * 1000 + STEP_MS);
  row.even = (await admittedOf(ask, seconds)).length / search.evenMinutes;
  return row;
}

/**
 * Returns the rows of the table. Each request may reach another isolate, so no limiter denies from an isolate's memory.
 */
export async function boundaryRows(
  redis: { host: string; port: number },
  search: Search,
): Promise<BoundaryRow[]> {
  const rest = await startUpstashRest({ redis });
  const { url, token } = rest;
  const store = createUpstashStore({ url, token, clock: "edge", timeoutMs: 10_000 });
  const weir = (windows: Pick<Demand, "windowMs" | "subWindows">) => (limit: number) => {
    return async (identity: string, now: number) => {
      const key = `weir:boundary:1m:${identity}`;
      const counter = { key, identity, limit, ceiling: limit, offsetMs: 0, cost: 1, ...windows };
      const [answer] = store.decide([[counter]], now);
      return (await answer)?.admitted === true;
    };
  };
  const upstash = (algorithm: "fixedWindow" | "slidingWindow") => (limit: number) => {
    const ratelimit = new Ratelimit({
      redis: new Redis({ url, token }),
      limiter: Ratelimit[algorithm](limit, "60 s"),
      ephemeralCache: false,
      timeout: 0,
      prefix: algorithm,
    });
    return async (client: string, now: number) => {
      const clock = Date.now;
      Date.now = () => now;
      try {
        return (await ratelimit.limit(client)).success;
      } finally {
        Date.now = clock;
      }
    };
  };
  const subjects: readonly [string, (limit: number) => Ask][] = [
    ["Weir", weir({ windowMs: MINUTE_MS })],
    ["Weir, `sliding: true`", weir({ windowMs: MINUTE_MS / 10, subWindows: 10 })],
    ["Weir, `sliding: 60`", weir({ windowMs: MINUTE_MS / 60, subWindows: 60 })],
    ["@upstash/ratelimit, fixedWindow", upstash("fixedWindow")],
    ["@upstash/ratelimit, slidingWindow", upstash("slidingWindow")],
  ];
  try {
    const rows: BoundaryRow[] = [];
    for (const [title, create] of subjects) rows.push(await rowOf(title, create, search));
    return rows;
  } finally {
    await rest.stop();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const redis = await startRedis({ requireServer: true });
  try {
    const attacksAt = Array.from({ length: 12 }, (_, at) => 4 + 5 * at);
    const rows = await boundaryRows(redis, { randomRuns: 50, attacksAt, evenMinutes: 11 });
    const cells = rows.map(({ title, boundary, random, attacker, even }) => [
      title,
      ...[boundary, random, attacker].map(String),
      even.toFixed(1),
    ]);
    const head = ["", "5 at 00:58, 5 at 01:02", "random, most", "attacker, most", "even, a minute"];
    console.log(table(head, cells));
  } finally {
    await redis.stop();
  }
}
