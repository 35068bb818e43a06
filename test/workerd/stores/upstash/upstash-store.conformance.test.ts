import { inject } from "vitest";
import { createUpstashStore } from "../../../../src/stores/upstash/upstash-store.ts";
import { conformance } from "../../../suite/conformance.ts";

const { restUrl: url, restToken: token } = inject("redis");
const createStore = () => createUpstashStore({ url, token, clock: "edge", timeoutMs: 10_000 });

conformance("Upstash Redis with the edge's clock", createStore, {
  expiresByStoreClock: true,
  sequences: 300,
  // The clock goes back only by whole ticks, because a key lives for the rest of its window in real
  // time, and must not expire while a sequence runs.
  back: [20_000, 100_000],
  blocks: true,
});
