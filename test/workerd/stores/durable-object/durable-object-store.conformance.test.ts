import { env } from "cloudflare:workers";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import { conformance } from "../../../suite/conformance.ts";

const createStore = () =>
  createDurableObjectStore({ namespace: env.COUNTERS, prefix: "conformance", timeoutMs: 10_000 });

conformance("Durable Objects", createStore, {
  sequences: 150,
  back: [1, 999],
  // If one of a group's objects denies, the other objects take their charges back. By then,
  // counters that roll over have already moved to the current window in these other objects.
  backAcross: false,
  bans: true,
});
