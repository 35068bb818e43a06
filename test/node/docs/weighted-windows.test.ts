import { Ratelimit } from "@upstash/ratelimit";
import { Redis } from "@upstash/redis";
import { afterAll, afterEach, expect, it, vi } from "vitest";
import { startTestRedis } from "../../../dev/test-redis.ts";
import { startUpstashRest } from "../../../dev/upstash-rest.ts";

// docs/how-it-counts.md says what the weighted sliding window of @upstash/ratelimit admits after five requests at 00:58.

const redis = await startTestRedis();
const rest = await startUpstashRest({ redis });

afterEach(() => {
  vi.useRealTimers();
});

afterAll(async () => {
  await rest.stop();
  await redis.stop();
});

/** Sends requests at these seconds, and returns the seconds of those that a limit of 5 a minute admits. */
async function admittedAt(...seconds: number[]): Promise<number[]> {
  const { url, token } = rest;
  const limiter = new Ratelimit({
    redis: new Redis({ url, token }),
    limiter: Ratelimit.slidingWindow(5, "1 m"),
    ephemeralCache: false,
  });
  const client = crypto.randomUUID();
  const midnight = Date.UTC(2026, 11, 1);
  vi.useFakeTimers({ toFake: ["Date"] });
  const admitted: number[] = [];
  for (const second of seconds) {
    vi.setSystemTime(midnight + second * 1000);
    if ((await limiter.limit(client)).success) admitted.push(second);
  }
  return admitted;
}

const burst = Array<number>(5).fill(58);

it("a weighted window admits a sixth request four seconds later", async () => {
  expect(await admittedAt(...burst, ...Array<number>(5).fill(62))).toEqual([...burst, 62]);
});

it("a weighted window admits ten requests in one minute", async () => {
  const eachSecond = Array.from({ length: 56 }, (_, second) => 62 + second);
  const admitted = await admittedAt(...burst, ...eachSecond);
  expect(admitted.filter((second) => second < 58 + 60)).toHaveLength(10);
});
