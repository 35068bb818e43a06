import { withDeadline } from "../../../src/stores/deadline.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { conformance } from "../../suite/conformance.ts";

conformance("a deadline", () => withDeadline(createMemoryStore(), 1000), {
  runs: 1000,
  back: [1, 999],
  bans: true,
});
