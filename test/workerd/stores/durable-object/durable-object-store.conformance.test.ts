import { env, waitUntil } from "cloudflare:workers";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import { withSeparateGroups } from "../../../../src/stores/separate-groups.ts";
import { conformance } from "../../../suite/conformance.ts";

const timeoutMs = 10_000;

function createStore() {
  const objects = createDurableObjectStore({
    namespace: env.COUNTERS,
    prefix: "conformance",
    timeoutMs,
  });
  return withSeparateGroups(objects, { timeoutMs, background: waitUntil });
}

conformance("Durable Objects", createStore, {
  runs: 150,
  back: [1, 999],
  // If one of a group's objects denies, the other objects take their charges back. By then,
  // counters that roll over have already moved to the current window in these other objects.
  backAcross: false,
  bans: true,
});
