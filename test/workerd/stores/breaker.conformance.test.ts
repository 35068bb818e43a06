import { withBreaker } from "../../../src/stores/breaker.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { modelSuite } from "../../suite/model-suite.ts";
import { storeSuite } from "../../suite/store-suite.ts";
import { vectorSuite } from "../../suite/vector-suite.ts";

for (const [name, clients] of [
  ["a breaker over one store", 1],
  ["a breaker over objects", 3],
] as const) {
  const createStore = () => withBreaker(createMemoryStore(), { timeoutMs: 1000, clients });
  storeSuite(name, createStore);
  vectorSuite(name, createStore);
  modelSuite(name, createStore, { runs: 1000, back: [1, 999], bans: true });
}
