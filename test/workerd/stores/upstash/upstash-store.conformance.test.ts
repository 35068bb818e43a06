import { inject } from "vitest";
import { createUpstashStore } from "../../../../src/stores/upstash/upstash-store.ts";
import { createUpstashClient } from "../../../../src/stores/upstash/wire.ts";
import { conformance } from "../../../suite/conformance.ts";

const { restUrl: url, restToken: token } = inject("redis");
const createStore = () => createUpstashStore({ url, token, clock: "edge", timeoutMs: 10_000 });

const AGE_KEYS = `for _, key in ipairs(KEYS) do
  local left = redis.call('PTTL', key)
  if left > 0 then redis.call('PEXPIRE', key, math.max(0, left - ARGV[1])) end
end`;

async function ageKeys(keys: readonly string[], ms: number): Promise<void> {
  await createUpstashClient({ url, token, timeoutMs: 10_000 }).eval(AGE_KEYS, [...keys], [ms]);
}

conformance("Upstash Redis with the edge's clock", createStore, {
  ageKeys,
  sequences: 300,
  // The clock goes back only by whole ticks, because a key lives for the rest of its window in real
  // time, and must not expire while a sequence runs.
  back: [20_000, 100_000],
  blocks: true,
});
