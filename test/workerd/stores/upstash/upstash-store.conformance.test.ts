import { inject } from "vitest";
import { createUpstashStore } from "../../../../src/stores/upstash/upstash-store.ts";
import { modelSuite } from "../../../suite/model-suite.ts";
import { vectorSuite } from "../../../suite/vector-suite.ts";

const { restUrl: url, restToken: token } = inject("redis");
const createStore = () => createUpstashStore({ url, token, clock: "edge", timeoutMs: 10_000 });

vectorSuite("Upstash Redis, the edge's clock", createStore, { expiresByItself: true });
// By whole ticks: a key lives for what is left of its window in real time, and is not to expire
// while a sequence runs.
modelSuite("Upstash Redis, the edge's clock", createStore, {
  runs: 300,
  back: [20_000, 100_000],
  blocks: true,
});
