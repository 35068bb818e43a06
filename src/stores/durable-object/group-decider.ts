import type { Counter, UnusedQuota } from "../../engine/counter.ts";
import type { ObjectOf } from "./decision-calls.ts";
import type { DecisionDeadline } from "./decision-deadline.ts";
import { ObjectCalls } from "./object-calls.ts";
import { type ObjectPart, partsOf } from "./object-parts.ts";
import { decideAcross, type GroupDecision } from "./two-phase.ts";

type Group = readonly Counter[];

/**
 * Decides groups of counters that have no alternatives. If possible, it makes only one call for
 * each object.
 */
export class GroupDecider {
  readonly #objectOf: ObjectOf;
  readonly #calls: ObjectCalls;
  readonly #background: (task: Promise<unknown>) => void;

  /** @param background lets a task run to its end although no response waits for it */
  constructor(objectOf: ObjectOf, timeoutMs: number, background: (task: Promise<unknown>) => void) {
    this.#objectOf = objectOf;
    this.#calls = new ObjectCalls(objectOf, timeoutMs, background);
    this.#background = background;
  }

  async decide(
    groups: readonly Group[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
    deadline: DecisionDeadline,
  ): Promise<GroupDecision[]> {
    const decisions: GroupDecision[] = [];
    /** Maps an object's identity to the indices of the groups that need only this object. */
    const inOneObject = new Map<string, number[]>();
    const calls: Promise<unknown>[] = [];
    for (const [index, group] of groups.entries()) {
      const parts = partsOf(group);
      const [{ identity }] = parts as [ObjectPart];
      if (parts.length === 1) {
        inOneObject.set(identity, [...(inOneObject.get(identity) ?? []), index]);
        continue;
      }
      const call = decideAcross(this.#objectOf, parts, now, deadline, this.#background);
      calls.push(call.then((decision) => (decisions[index] = decision)));
    }
    const returnsElsewhere = unused.filter(({ counter }) => !inOneObject.has(counter.identity));
    if (returnsElsewhere.length > 0) this.#background(this.#returnUnused(returnsElsewhere, now));
    for (const [identity, indices] of inOneObject) {
      const call = this.#calls.decide(
        identity,
        indices.map((index) => groups[index] as Group),
        now,
        unused.filter(({ counter }) => counter.identity === identity),
        deadline,
      );
      calls.push(
        call.then((verdicts) => {
          for (const [at, index] of indices.entries()) {
            decisions[index] = verdicts[at] as GroupDecision;
          }
        }),
      );
    }
    await Promise.all(calls);
    return decisions;
  }

  /**
   * Returns unused quota in separate calls. If a call fails, the quota stays charged, and the
   * failure is ignored.
   */
  #returnUnused(unused: readonly UnusedQuota[], now: number | undefined): Promise<unknown> {
    return Promise.allSettled(
      unused.map((each) => this.#objectOf(each.counter.identity).returnUnused([each], now)),
    );
  }
}
