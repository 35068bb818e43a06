import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import { counter } from "../../../suite/counters.ts";
import { modelSuite } from "../../../suite/model-suite.ts";
import { vectorSuite } from "../../../suite/vector-suite.ts";

const createStore = () =>
  createDurableObjectStore({ namespace: env.COUNTERS, prefix: "conformance", timeoutMs: 10_000 });

vectorSuite("Durable Objects", createStore);
// A group over several clients' objects gives back what it took when one of them denies.
modelSuite("Durable Objects", createStore, {
  runs: 150,
  back: [1, 999],
  backAcross: false,
  bans: true,
});

it("denies who is banned since this very millisecond without waiting for an open hold", async () => {
  const now = Math.ceil(Date.now() / 60_000) * 60_000;
  const banned = counter({ limit: 0, banMs: 60_000 });
  const object = env.COUNTERS.getByName(`conformance:${banned.identity}`);
  await object.hold([counter({ identity: banned.identity })], now, 0);
  await object.decide([[banned]], now, 0);
  // By longer than the test may take: it would wait, if it did, until it is called off.
  const verdicts = await object.decide([[{ ...banned, cost: 0 }]], now, 60_000);
  expect(verdicts).toMatchObject([{ admitted: false, tallies: [{ banMs: 60_000 }] }]);
});
