import { withDenialCache } from "../../../../src/stores/isolate/with-denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { conformance } from "../../../suite/conformance.ts";
import { leasable } from "../../../suite/leasable.ts";

const overStore = (store: Store) =>
  leasable(withLeases(store, { timeoutMs: 1000, background: () => {} }));

conformance("leases", () => overStore(createMemoryStore()), { runs: 3000, bans: true });

conformance("leases over a denial cache", () => overStore(withDenialCache(createMemoryStore())), {
  runs: 2000,
  bans: true,
});
