import { withDenialCache } from "../../../../src/stores/isolate/with-denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import { leasable } from "../../../suite/leasable.ts";
import { modelSuite } from "../../../suite/model-suite.ts";
import { storeSuite } from "../../../suite/store-suite.ts";
import { vectorSuite } from "../../../suite/vector-suite.ts";

const options = { timeoutMs: 1000, background: () => {} };
const createStore = () => leasable(withLeases(createMemoryStore(), options));
const withDenials = () => leasable(withLeases(withDenialCache(createMemoryStore()), options));

storeSuite("leases", createStore);
vectorSuite("leases", createStore);
modelSuite("leases", createStore, { runs: 3000, bans: true });

storeSuite("leases and denials", withDenials);
vectorSuite("leases and denials", withDenials);
modelSuite("leases and denials", withDenials, { runs: 2000, bans: true });
