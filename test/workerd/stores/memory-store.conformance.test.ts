import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { modelSuite } from "../../suite/model-suite.ts";
import { vectorSuite } from "../../suite/vector-suite.ts";

const createStore = () => createMemoryStore();

vectorSuite("memory", createStore);
modelSuite("memory", createStore, {
  runs: 5000,
  back: [1, 999, 20_000, 100_000],
  blocks: true,
  bans: true,
});
