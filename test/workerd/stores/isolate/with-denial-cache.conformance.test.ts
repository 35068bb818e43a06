import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import { conformance } from "../../../suite/conformance.ts";

conformance("a denial cache", () => withDenialCache(createMemoryStore()), {
  sequences: 2000,
  bans: true,
});
