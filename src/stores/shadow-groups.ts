import type { Counter } from "../engine/counter.ts";
import { withDeadline } from "./deadline.ts";
import type { GroupAnswer, Store, Verdict } from "./store.ts";

type Group = readonly Counter[];

/** Whether a group is that of a rule in shadow mode. */
export function isShadow(group: Group): boolean {
  return group[0]?.shadow === true;
}

/** The answer for a shadow group that could not be decided. */
export function failedGroup(error: unknown): GroupAnswer {
  return decidedLater(Promise.reject(error), 1)[0] as GroupAnswer;
}

/** The answers for shadow groups that nobody waits for, out of one call that decides them all. */
export function decidedLater(call: Promise<Verdict>, groups: number): GroupAnswer[] {
  return Array.from({ length: groups }, (_, index): GroupAnswer => {
    const later = call.then((verdict): Verdict | Promise<Verdict> => {
      const answer = verdict.groups[index] as GroupAnswer;
      return answer.later ?? { now: verdict.now, groups: [answer] };
    });
    // Whether anybody listens is not known here.
    later.catch(() => {});
    return { admitted: false, tallies: [], later };
  });
}

export interface ShadowOptions {
  /** How long a shadow group may take, in milliseconds. */
  readonly timeoutMs: number;
  /** Keeps a task alive that no response waits for. */
  readonly background: (task: Promise<unknown>) => void;
}

/**
 * A store that decides shadow groups in calls of their own, where each client has a place of its own:
 * one place may fail or be slow while the others work, and no enforced rule is to notice.
 *
 * A shadow group that lives in the one place that the enforced groups need goes there with them, since
 * a call of its own would only cost more.
 */
export function withShadowsApart(store: Store, { timeoutMs, background }: ShadowOptions): Store {
  const inTime = withDeadline(store, timeoutMs);

  return {
    ...store,

    async decide(groups, now, unused) {
      const home = homeOf(groups.filter((group) => !isShadow(group)).flat());
      const isApart = (group: Group) =>
        home !== undefined && isShadow(group) && !livesIn(group, home);
      const apart = groups.map((group) => {
        if (!isApart(group)) return undefined;
        const call = inTime.decide([group], now);
        background(call.catch(() => {}));
        return decidedLater(call, 1)[0];
      });
      const together = groups.filter((_, index) => !apart[index]);
      const verdict = await store.decide(together, now, unused);
      const answers = verdict.groups.values();
      return {
        now: verdict.now,
        groups: apart.map((answer) => answer ?? (answers.next().value as GroupAnswer)),
      };
    },
  };
}

/** The place of counters that all live in one; `null` when they live in several; undefined of none. */
function homeOf(counters: Group): string | null | undefined {
  const [first] = counters;
  return first && (livesIn(counters, first.identity) ? first.identity : null);
}

function livesIn(group: Group, home: string | null): boolean {
  return group.every(({ identity, alternative }) => identity === home && !alternative);
}
