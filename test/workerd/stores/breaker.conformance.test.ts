import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { conformance } from "../../suite/conformance.ts";
import { withBreaker } from "../../suite/wrappers.ts";

const options = { sequences: 1000, back: [1, 999], bans: true };

for (const [name, clients] of [
  ["a breaker over one store", 1],
  ["a breaker over objects", 3],
] as const) {
  const createStore = () => withBreaker(createMemoryStore(), { timeoutMs: 1000, clients });
  conformance(name, createStore, options);
}
