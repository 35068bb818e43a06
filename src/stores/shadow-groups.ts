import type { Counter } from "../engine/counter.ts";
import { withDeadline } from "./deadline.ts";
import type { GroupAnswer, Store, Verdict } from "./store.ts";

type Group = readonly Counter[];

/** Whether a group belongs to a rule in shadow mode. */
export function isShadow(group: Group): boolean {
  return group[0]?.shadow === true;
}

/** The answer for a shadow group that could not be decided. */
export function failedGroup(error: unknown): GroupAnswer {
  return decidedLater(Promise.reject(error), 1)[0] as GroupAnswer;
}

/**
 * The answers for shadow groups that one call decides. Enforced groups do not wait for this call.
 *
 * @param groups the number of groups in the call
 */
export function decidedLater(call: Promise<Verdict>, groups: number): GroupAnswer[] {
  return Array.from({ length: groups }, (_, index): GroupAnswer => {
    const later = call.then((verdict): Verdict | Promise<Verdict> => {
      const answer = verdict.groups[index] as GroupAnswer;
      return answer.later ?? { now: verdict.now, groups: [answer] };
    });
    // The caller may ignore `later`, and then nothing would handle a rejection.
    later.catch(() => {});
    return { admitted: false, tallies: [], later };
  });
}

export interface ShadowOptions {
  /** The deadline of a shadow group's call, in milliseconds. */
  readonly timeoutMs: number;
  /** Lets a task run to its end although no response waits for it. */
  readonly background: (task: Promise<unknown>) => void;
}

/**
 * Wraps a store made of objects so that shadow groups are decided in separate calls. An object that
 * only a shadow group needs must not affect enforced rules if it fails or is slow.
 *
 * If the enforced groups need only one object, shadow groups in the same object are decided in the
 * same call, because a second call would only cost more.
 */
export function withSeparateShadows(store: Store, { timeoutMs, background }: ShadowOptions): Store {
  const shadowStore = withDeadline(store, timeoutMs);

  return {
    ...store,

    async decide(groups, now, unused) {
      const enforced = groups.filter((group) => !isShadow(group)).flat();
      const isSeparate = (group: Group) =>
        enforced.length > 0 && isShadow(group) && !sharesObject(group, enforced);
      const separate = groups.map((group) => {
        if (!isSeparate(group)) return undefined;
        const call = shadowStore.decide([group], now);
        background(call.catch(() => {}));
        return decidedLater(call, 1)[0];
      });
      const together = groups.filter((_, index) => !separate[index]);
      const verdict = await store.decide(together, now, unused);
      const answers = verdict.groups.values();
      return {
        now: verdict.now,
        groups: separate.map((answer) => answer ?? (answers.next().value as GroupAnswer)),
      };
    },
  };
}

/** Whether a group and the enforced counters are all stored in one object. */
function sharesObject(group: Group, enforced: Group): boolean {
  const identity = enforced[0]?.identity;
  const isThere = (counter: Counter) => counter.identity === identity && !counter.alternative;
  return enforced.every(isThere) && group.every(isThere);
}
