import { afterAll, beforeAll, expect, it } from "vitest";
import { hangUp, WAYS_TO_HANG_UP } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const LIMIT = 1000;
const CLIENTS = 20;
/** The duration of the function, in milliseconds. The clients hang up before it ends. */
const SLOW_MS = 60;

const CONFIG: ConfigInput = {
  rules: [
    {
      name: "plan",
      match: { paths: ["/"] },
      key: "custom:plan",
      limit: LIMIT,
      window: "52w",
      lease: false,
    },
    {
      name: "own",
      match: { paths: ["/own"] },
      key: "header:x-plan",
      limit: { from: "custom:own", max: LIMIT, default: 1, cacheFor: "0s" },
      window: "52w",
      lease: false,
    },
  ],
  timeoutMs: 5000,
};

/** A Worker whose function waits, and then reads the body. */
const MAIN = `
  import { CounterObject, defineConfig, weir } from "./weir.mjs";
  const keys = {
    async plan(request) {
      await scheduler.wait(${SLOW_MS});
      await request.clone().text();
      return request.headers.get("x-plan");
    },
  };
  const limits = {
    async own() {
      await scheduler.wait(${10 * SLOW_MS});
      return ${LIMIT};
    },
  };
  export default weir(defineConfig({ ...${JSON.stringify(CONFIG)}, custom: { keys, limits } }));
  export { CounterObject };
`;

let zone: Origin;
let worker: RunningWorker;

beforeAll(async () => {
  zone = await startOrigin();
  // The configuration with functions is in MAIN, because this option is passed as JSON.
  worker = await startWorker({ config: { rules: [] }, main: MAIN, zone: zone.address });
});

afterAll(async () => {
  await worker.stop();
  await zone.stop();
});

it.each(WAYS_TO_HANG_UP)(
  "Clients that hang up during a function have no effect on the clients that stay: %s",
  async (way) => {
    const headers = { Host: "shop.example", "X-Plan": `gold-${way}` };
    const post = { method: "POST", path: "/", headers, body: "half", contentLength: 8 };
    const leaving = Array.from({ length: CLIENTS }, (_, index) =>
      hangUp(worker.url, index % 2 ? post : { path: "/", headers }, { way, when: SLOW_MS / 2 }),
    );
    const staying = Array.from({ length: CLIENTS }, () => send(worker.url, "/", { headers }));
    const responses = await Promise.all(staying);
    await Promise.all(leaving);
    expect(responses.map(({ status }) => status)).toEqual(Array(CLIENTS).fill(200));
    // Each client that stays is charged exactly once. A client that leaves is charged at most once.
    const left = new Set(responses.map(({ headers }) => Number(limitsOf(headers)[0]?.r)));
    expect(left.size).toBe(CLIENTS);
    expect(Math.min(...left)).toBeGreaterThanOrEqual(LIMIT - 2 * CLIENTS);
    // If a client leaves before its body is complete, the function throws. Each isolate logs at most one
    // such line a second.
    const failed = /^error: \{"weir":"custom-key-failed","key":"plan","cause":"threw"\}$/;
    expect(worker.logs().filter((line) => !failed.test(line))).toEqual([]);
  },
);

it("Clients whose connection breaks off during the function of their limit are not charged", async () => {
  const leaving = Array.from({ length: CLIENTS }, async (_, index) => {
    const own = { path: "/own", headers: { Host: "shop.example", "X-Plan": `own-${index}` } };
    await hangUp(worker.url, own, { way: "reset", when: SLOW_MS / 2 });
    // The function has ended when the next request has its answer.
    const { headers } = await send(worker.url, "/own", { headers: own.headers });
    const again = await send(worker.url, "/own", { headers: own.headers });
    return [limitsOf(headers)[0]?.r, limitsOf(again.headers)[0]?.r];
  });
  const left = await Promise.all(leaving);
  expect(left).toEqual(Array(CLIENTS).fill([LIMIT - 1, LIMIT - 2]));
});
