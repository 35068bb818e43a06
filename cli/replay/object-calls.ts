import type { Counter, UnusedQuota } from "../../src/engine/counter.ts";
import { partsOf } from "../../src/stores/durable-object/shards.ts";
import { isOptional } from "../../src/stores/store.ts";
import type { GroupAnswer } from "./group-answers.ts";

// Estimates of the calls to Durable Objects, by the tables of docs/cost.md. Each identity has an object.

type Group = readonly Counter[];

/** The calls of a charge to a counter with two shards: both are read first. */
const CALLS_OF_SHARDED_CHARGE = 3;

/**
 * Returns the calls that a decision takes. If the enforced rules need only one object, the other rules of this
 * object share its call.
 *
 * @param unused quota that is returned with the decision
 */
export function decisionCalls(
  groups: readonly Group[],
  answers: readonly (GroupAnswer | undefined)[],
  unused: readonly UnusedQuota[],
): number {
  const called = new Set<string>();
  let shared: string | undefined;
  let calls = 0;
  for (const [index, group] of groups.entries()) {
    const answer = answers[index];
    const isAdmitted = answer?.admitted ?? true;
    const parts = partsOf(group);
    const [first] = parts;
    if (answer?.tallies.length === 0 || !first || first.identity === shared) continue;
    const hasShards = group.some(({ alternative }) => alternative);
    calls += groupCalls(parts.length, isAdmitted) + (hasShards && !isAdmitted ? 1 : 0);
    for (const { identity } of parts) called.add(identity);
    if (parts.length === 1 && !isOptional(group)) shared = first.identity;
  }
  return calls + unused.filter(({ counter }) => !called.has(counter.identity)).length;
}

/**
 * Returns the calls that one group takes. With several objects, each one except the last is called a second
 * time after an admission. After a denial, it depends on the object that denied: this is the minimum.
 *
 * @param objects the number of objects with counters of the group
 */
function groupCalls(objects: number, isAdmitted: boolean): number {
  return isAdmitted ? 2 * objects - 1 : objects;
}

/** Returns the calls that a charge after a response takes. */
export function adjustmentCalls(counters: Group): number {
  const isSharded = counters.some(({ alternative }) => alternative);
  return partsOf(counters).length * (isSharded ? CALLS_OF_SHARDED_CHARGE : 1);
}
