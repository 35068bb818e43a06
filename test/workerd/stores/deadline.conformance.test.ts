import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { conformance } from "../../suite/conformance.ts";
import { withDeadline } from "../../suite/wrappers.ts";

conformance("a deadline", () => withDeadline(createMemoryStore(), 1000), {
  sequences: 1000,
  back: [1, 999],
  bans: true,
});
