import { env } from "cloudflare:workers";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import { conformance } from "../../../suite/conformance.ts";

const createStore = () =>
  createDurableObjectStore({ namespace: env.COUNTERS, prefix: "conformance", timeoutMs: 10_000 });

conformance("Durable Objects", createStore, {
  runs: 150,
  back: [1, 999],
  // A group over several clients' objects returns what it took when one of them denies.
  backAcross: false,
  bans: true,
});
