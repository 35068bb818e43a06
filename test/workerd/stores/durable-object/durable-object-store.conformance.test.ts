import { env } from "cloudflare:workers";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import { conformance } from "../../../suite/conformance.ts";

const createStore = () =>
  createDurableObjectStore({ namespace: env.COUNTERS, prefix: "conformance", timeoutMs: 10_000 });

conformance("Durable Objects", createStore, {
  runs: 150,
  back: [1, 999],
  // If one of a group's objects denies, the other objects take their charges back. These objects
  // have then already moved their counters that roll over to the current window.
  backAcross: false,
  bans: true,
});
