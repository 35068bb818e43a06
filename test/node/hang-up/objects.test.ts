import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hangUp, WAYS_TO_HANG_UP } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const CUTS = 40;
/** How many clients send and hang up at the same time. */
const AT_ONCE = 4;
const SHARED = 30;
const year = "52w";

// Two rules with different keys, so that each decision needs two Durable Objects. The hashes of the
// keys determine which object is called first.
const RULES: ConfigInput["rules"] = [
  { name: "shared", key: "header:x-shared", limit: SHARED, window: year, onError: "closed" },
  {
    name: "own",
    match: { except: { paths: ["/honest"] } },
    key: "header:x-own",
    limit: 0,
    window: year,
    onError: "closed",
  },
];

/**
 * How long each call to an object takes, in milliseconds. It is long enough for clients to hang up
 * during a call.
 */
const DISTANCE_MS = 20;

const config: ConfigInput = {
  store: "durable-object",
  rules: RULES,
  prefix: randomUUID(),
  timeoutMs: 5000,
};

const MAIN = `
  import { CounterObject as Counters, defineConfig, weir } from "./weir.mjs";

  export class CounterObject extends Counters {
    async run(...args) {
      await scheduler.wait(${DISTANCE_MS});
      return super.run(...args);
    }
    async endHold(...args) {
      await scheduler.wait(${DISTANCE_MS});
      return super.endHold(...args);
    }
  }

  export default weir(defineConfig(${JSON.stringify(config)}));
`;

let origin: Origin;
let worker: RunningWorker;

beforeAll(async () => {
  origin = await startOrigin();
  origin.on("/honest", (_, response) => response.end());
  worker = await startWorker({ config, vars: { ORIGIN_URL: origin.url }, main: MAIN });
});

afterAll(async () => {
  await worker.stop();
  await origin.stop();
});

describe.each(WAYS_TO_HANG_UP)(
  "clients that hang up by %s during a decision by two objects",
  (way) => {
    it("take no quota if they are denied, and do not delay other clients", async () => {
      const shared = randomUUID();
      const headersOf = () => ({ "x-shared": shared, "x-own": randomUUID() });
      async function cutting(first: number): Promise<void> {
        for (let cut = first; cut < CUTS; cut += AT_ONCE) {
          // Clients hang up at different times, from before the first call until after the last call.
          const when = (cut * 4 * DISTANCE_MS) / CUTS;
          await hangUp(worker.url, { path: "/cut", headers: headersOf() }, { way, when });
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, (_, first) => cutting(first)));
      const statuses = (count: number) =>
        Promise.all(
          Array.from({ length: count }, async () => {
            const headers = { "x-shared": shared };
            return (await send(worker.url, "/honest", { headers })).status;
          }),
        );
      expect(await statuses(SHARED)).toEqual(Array(SHARED).fill(200));
      expect(await statuses(5)).toEqual([429, 429, 429, 429, 429]);
      expect(worker.logs().filter((line) => !line.includes('"weir":"denied'))).toEqual([]);
    });
  },
);
