import { waitUntil } from "cloudflare:workers";
import { type Counter, MAX_COUNT, type Tally } from "../../engine/counter.ts";
import type { Store } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { CounterObject } from "./counter-object.ts";
import { DecisionDeadline } from "./decision-deadline.ts";
import { GroupDecider } from "./group-decider.ts";
import { partsOf } from "./object-parts.ts";
import { ShardChoice } from "./shard-choice.ts";
import { ShardUsage } from "./shard-usage.ts";
import { chooseShardsToAdjust, decideInShards } from "./shards.ts";
import { withWindow } from "./two-phase.ts";

export interface DurableObjectOptions {
  readonly namespace: DurableObjectNamespace<CounterObject>;
  /**
   * The start of each object's name. Several Weirs with different prefixes can share a namespace.
   */
  readonly prefix: string;
  /** The deadline of a decision, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * Lets a task run to its end although no response waits for it.
   *
   * @default waitUntil
   */
  readonly background?: (task: Promise<unknown>) => void;
}

/**
 * Creates a store that keeps its counters in Durable Objects, with one object for each identity.
 *
 * Rules with the same key share an object, so most decisions take one call. If a group's counters
 * are in several objects, the group is decided in two phases (see two-phase.ts). If a counter has
 * two shards, the shard that last had more quota left is called first (see shard-choice.ts).
 */
export function createDurableObjectStore({
  namespace,
  prefix,
  timeoutMs,
  background = waitUntil,
}: DurableObjectOptions): Store {
  const objectOf = (identity: string) => namespace.getByName(`${prefix}:${identity}`);
  const decider = new GroupDecider(objectOf, timeoutMs, background);
  const usage = new ShardUsage();

  return {
    async decide(groups, now, unused = []) {
      try {
        const choices = groups.map((group) => new ShardChoice(group, usage));
        const deadline = new DecisionDeadline(timeoutMs);
        const decisions = await decideInShards(decider, choices, now, unused, deadline);
        const storeNow = decisions[0]?.now ?? now ?? Date.now();
        return {
          now: storeNow,
          groups: decisions.map(({ now: decidedAt, ...answer }, index) => {
            if (decidedAt === storeNow) return answer;
            const tallies = answer.tallies.map(
              (tally, at) =>
                tally && withWindow(tally, groups[index]?.[at] as Counter, decidedAt, storeNow),
            );
            return { ...answer, tallies };
          }),
        };
      } catch (error) {
        throw toStoreError(error);
      }
    },

    async adjust(counters, now) {
      const tallies: Tally[] = [];
      try {
        const chosen = await chooseShardsToAdjust(objectOf, counters, now);
        await Promise.all(
          partsOf(chosen).map(async (part) => {
            const adjusted: Tally[] = await objectOf(part.identity).adjust(part.counters, now);
            for (const [index, tally] of adjusted.entries()) {
              const position = part.positions[index] as number;
              const [own, shard] = [counters[position], chosen[position]] as [Counter, Counter];
              const count = Math.min(MAX_COUNT, tally.count + (own.ceiling - shard.ceiling));
              tallies[position] = { ...tally, count };
            }
          }),
        );
        return tallies;
      } catch (error) {
        throw toStoreError(error);
      }
    },

    async reset(counters, now) {
      try {
        await Promise.all(
          partsOf(counters).map((part) => objectOf(part.identity).reset(part.counters, now)),
        );
      } catch (error) {
        throw toStoreError(error);
      }
    },
  };
}

/**
 * Converts an error of a call into a `StoreError`. The message of an object's error is left out,
 * because it may contain keys.
 */
function toStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const isOverloaded = (error as { overloaded?: unknown } | undefined)?.overloaded === true;
  return isOverloaded
    ? new StoreError("error-reply", "a Durable Object is overloaded")
    : new StoreError("unreachable", "a Durable Object did not answer");
}
