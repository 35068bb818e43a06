import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { conformance } from "../../suite/conformance.ts";

conformance("memory", () => createMemoryStore(), {
  sequences: 1000,
  back: [1, 999, 20_000, 100_000],
  blocks: true,
  bans: true,
});
