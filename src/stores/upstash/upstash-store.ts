import { banKey, inBothModes, strikesKey } from "../../engine/bans.ts";
import type { Counter } from "../../engine/counter.ts";
import { isDependent, isShadow } from "../group-roles.ts";
import type { Store } from "../store.ts";
import { createAdjustScript, createResetScript, LIFT_SCRIPT } from "./adjust-script.ts";
import { createDecideScript } from "./decide-script.ts";
import type { Clock } from "./script.ts";
import { argumentsOf, keysOf, withBanKeys } from "./script-arguments.ts";
import { readTallies, readVerdict } from "./script-reply.ts";
import { createUpstashClient, type UpstashClient } from "./upstash-client.ts";
import { identitiesOf, toStoreError } from "./upstash-error.ts";
import { UpstashScript } from "./upstash-script.ts";

export interface UpstashOptions {
  /** The database's REST endpoint: UPSTASH_REDIS_REST_URL. */
  readonly url: string;
  /** The database's token: UPSTASH_REDIS_REST_TOKEN. */
  readonly token: string;
  readonly clock: Clock;
  /** The deadline of a decision, in milliseconds. */
  readonly timeoutMs: number;
  /** Sends the calls. @default Upstash's client */
  readonly client?: UpstashClient;
}

/**
 * Creates a store that keeps its counters in Upstash Redis. A decision takes one REST call, which
 * runs a script.
 */
export function createUpstashStore({
  url,
  token,
  clock,
  timeoutMs,
  client = createUpstashClient({ url, token, timeoutMs }),
}: UpstashOptions): Store {
  const decideScript = new UpstashScript(client, createDecideScript(clock));
  const adjustScript = new UpstashScript(client, createAdjustScript(clock));
  const resetScript = new UpstashScript(client, createResetScript(clock));
  const liftScript = new UpstashScript(client, LIFT_SCRIPT);

  /** @param args the script's arguments that follow the time */
  async function run<Result>(
    script: UpstashScript,
    counters: readonly Counter[],
    now: number,
    args: readonly number[],
    readReply: (reply: unknown) => Result,
  ): Promise<Result> {
    const keys = counters.flatMap((counter) => keysOf(counter, clock, now));
    try {
      return readReply(await script.run(keys, [clock === "edge" ? now : 0, ...args]));
    } catch (error) {
      throw toStoreError(error, [token, ...counters.flatMap(identitiesOf)]);
    }
  }

  /** Removes the bans and strikes of counters, and keeps their counts. */
  async function lift(counters: readonly Counter[]): Promise<void> {
    const keys = counters.flatMap(inBothModes).flatMap((each) => [banKey(each), strikesKey(each)]);
    try {
      await liftScript.run(keys, []);
    } catch (error) {
      throw toStoreError(error, [token, ...counters.flatMap(identitiesOf)]);
    }
  }

  return {
    decide(groups, now = Date.now(), unused = []) {
      const counters = [...unused.map(({ counter }) => counter), ...groups.flat()];
      const args = [
        groups.length,
        unused.length,
        ...unused.flatMap(({ counter, quota, window }) => [
          ...argumentsOf(counter, now),
          quota,
          window,
        ]),
        ...groups.flatMap((group) => [
          ...(isDependent(group) ? [0] : []),
          isShadow(group) ? -group.length : group.length,
          ...group.flatMap((counter) => argumentsOf(counter, now)),
        ]),
      ];
      return run(decideScript, counters, now, args, (reply) => readVerdict(reply, groups));
    },

    adjust(counters, now = Date.now()) {
      const args = counters.flatMap((counter) => {
        const { chargedIn } = counter;
        return [...argumentsOf(counter, now), Number(chargedIn !== undefined), chargedIn ?? 0];
      });
      return run(adjustScript, counters, now, args, (reply) => readTallies(reply, counters));
    },

    async reset(counters, now = Date.now()) {
      const removed = counters.filter((counter) => !counter.keepsCount).flatMap(withBanKeys);
      const args = removed.flatMap((counter) => argumentsOf(counter, now));
      if (removed.length > 0) await run(resetScript, removed, now, args, () => undefined);
      const kept = counters.filter((counter) => counter.keepsCount);
      if (kept.length > 0) await lift(kept);
    },
  };
}
