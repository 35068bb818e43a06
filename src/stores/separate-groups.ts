import type { Counter } from "../engine/counter.ts";
import { withDeadline } from "./deadline.ts";
import {
  decidedLater,
  decisiveRole,
  isEnforced,
  isShadow,
  roleOf,
  SKIPPED,
} from "./group-roles.ts";
import type { GroupAnswer, Store } from "./store.ts";

type Group = readonly Counter[];

export interface SeparateOptions {
  /** The deadline of a decision, in milliseconds. It also applies to separate calls. */
  readonly timeoutMs: number;
  /** Lets a task run to its end although no response waits for it. */
  readonly background: (task: Promise<unknown>) => void;
}

/**
 * Wraps a store of Durable Objects so that shadow groups and dependent groups are decided in
 * separate calls. If an object that only such a group needs fails or is slow, this must not affect
 * enforced rules. A dependent group's call begins when the enforced groups are admitted.
 *
 * If the enforced groups need only one object, the other groups in the same object are decided in
 * the same call, because a second call would only cost more.
 */
export function withSeparateGroups(
  store: Store,
  { timeoutMs, background }: SeparateOptions,
): Store {
  return {
    ...store,

    async decide(groups, now, unused) {
      const startedAt = Date.now();
      const role = decisiveRole(groups);
      const decisive = groups.filter((group) => roleOf(group) === role).flat();
      const isSeparate = (group: Group) => roleOf(group) !== role && !sharesObject(group, decisive);
      const decideAlone = (group: Group) => {
        const restMs = Math.max(1, timeoutMs - (Date.now() - startedAt));
        const call = withDeadline(store, restMs).decide([group], now);
        background(call.catch(() => {}));
        return decidedLater(call, 1)[0];
      };
      const shadows = groups.map((group) =>
        isShadow(group) && isSeparate(group) ? decideAlone(group) : undefined,
      );
      const together = groups.filter((group) => !isSeparate(group));
      const verdict = await store.decide(together, now, unused);
      const isDenied = together.some(
        (group, index) => isEnforced(group) && !verdict.groups[index]?.admitted,
      );
      const answers = verdict.groups.values();
      return {
        now: verdict.now,
        groups: groups.map((group, index) => {
          if (!isSeparate(group)) return answers.next().value as GroupAnswer;
          return shadows[index] ?? (isDenied ? SKIPPED : (decideAlone(group) as GroupAnswer));
        }),
      };
    },
  };
}

/**
 * Wraps a store of Durable Objects so that a call without enforced groups becomes one call for each
 * object. Nothing depends on the groups of such a call, so an object that fails or is slow must
 * affect only its own groups. The store has a breaker, which then sees the failures of each object.
 */
export function withCallsByObject(store: Store): Store {
  return {
    ...store,

    async decide(groups, now, unused) {
      const calls = decisiveRole(groups) === "enforced" ? [] : indicesByObject(groups);
      if (calls.length < 2) return store.decide(groups, now, unused);
      const answers: GroupAnswer[] = [];
      for (const indices of calls) {
        const own = indices.map((index) => groups[index] as Group);
        const call = store.decide(own, now, indices.includes(0) ? unused : []);
        const later = decidedLater(call, own.length).values();
        for (const index of indices) answers[index] = later.next().value as GroupAnswer;
      }
      return { now: now ?? Date.now(), groups: answers };
    },
  };
}

/** Returns the indices of the groups that share an object, for each object. */
function indicesByObject(groups: readonly Group[]): number[][] {
  const calls: number[][] = [];
  for (const [index, group] of groups.entries()) {
    const call = calls.find(([first = 0]) => sharesObject(group, groups[first] as Group));
    if (call) call.push(index);
    else calls.push([index]);
  }
  return calls;
}

/** Whether a group and the decisive counters are all stored in one object. */
function sharesObject(group: Group, decisive: Group): boolean {
  const identity = decisive[0]?.identity;
  const isThere = (counter: Counter) => counter.identity === identity && !counter.alternative;
  return decisive.every(isThere) && group.every(isThere);
}
