import { withDenialCache } from "../../../../src/stores/isolate/with-denial-cache.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import { modelSuite } from "../../../suite/model-suite.ts";
import { storeSuite } from "../../../suite/store-suite.ts";
import { vectorSuite } from "../../../suite/vector-suite.ts";

const createStore = () => withDenialCache(createMemoryStore());

storeSuite("denial cache", createStore);
vectorSuite("denial cache", createStore);
modelSuite("denial cache", createStore, { runs: 2000, bans: true });
