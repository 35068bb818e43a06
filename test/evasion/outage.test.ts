import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Listening, listen } from "../../dev/loopback.ts";
import type { ConfigInput } from "../../src/config/index.ts";
import { type RunningWorker, startWorker } from "../node/support/worker.ts";
import { sendRaw, startTarget } from "./target.ts";
import { head } from "./vector.ts";

const TRIES = 20;

const RULES: ConfigInput["rules"] = [
  { name: "closed", match: { paths: ["/closed"] }, limit: 5, window: "52w", onError: "closed" },
  { name: "open", match: { paths: ["/open"] }, limit: 5, window: "52w" },
  {
    name: "local",
    match: { paths: ["/local"] },
    limit: 5,
    window: "52w",
    onError: "local",
    localShare: 1,
  },
];

let target: Awaited<ReturnType<typeof startTarget>>;
let silent: Listening;
let worker: RunningWorker;

beforeAll(async () => {
  target = await startTarget();
  // This server never answers, like a Redis under so much load that every answer is late.
  silent = await listen(createServer(() => {}));
  worker = await startWorker({
    config: { rules: RULES, timeoutMs: 50 },
    vars: {
      ORIGIN_URL: `http://${target.host}:${target.port}`,
      UPSTASH_REDIS_REST_URL: `http://${silent.host}:${silent.port}`,
      UPSTASH_REDIS_REST_TOKEN: "token",
    },
  });
});

afterAll(async () => {
  await worker.stop();
  await silent.stop();
  await target.stop();
});

/** Sends 20 simultaneous requests of one client. Returns the number of requests that pass. */
async function passed(path: string): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: TRIES }, () => sendRaw(worker.url, { lines: head(path) })),
  );
  return answers.filter(({ status }) => status === 200).length;
}

describe("an attacker who slows the store down", () => {
  it("gets no request past a `closed` rule", async () => {
    expect(await passed("/closed")).toBe(0);
  });

  it("gets at most the isolate's share past a `local` rule", async () => {
    expect(await passed("/local")).toBeLessThanOrEqual(5);
  });

  it("gets every request past an `open` rule, as configured", async () => {
    expect(await passed("/open")).toBe(TRIES);
  });
});
