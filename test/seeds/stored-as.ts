import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { storedKey } from "../../src/engine/counter.ts";
import { decideGroup } from "../../src/engine/fixed-window.ts";
import { ruleCountersOf } from "../../src/limiter/counters.ts";
import { CUSTOM_KEYS } from "./on-every-store.ts";

/**
 * Returns the keys that a request of `identity` writes, and the times at which they expire. The
 * engine computes them without a store, so `now` may be long past.
 *
 * @param now the time of the request, in seconds since the Unix epoch
 */
export function storedAs(input: ConfigInput, identity: string, now: number) {
  const { rules, prefix } = defineConfig({ ...input, custom: { keys: CUSTOM_KEYS } });
  return rules.flatMap((rule) =>
    ruleCountersOf({ rule, windows: rule.windows, identity }, prefix).map(({ counter }) => {
      const key = storedKey(counter, now * 1000);
      const { writes } = decideGroup([counter], now * 1000, () => undefined);
      return { key, expiresAt: (writes.get(key)?.expiresAt ?? Number.NaN) / 1000 };
    }),
  );
}
