import type { Counter } from "../engine/counter.ts";
import { countersOf, type RuleCounter } from "./counters.ts";

/** The counters of a request, in the groups in which a store decides them. */
export interface CounterGroups {
  /** The counters of all enforced rules form one group, which is charged as a whole or not at all. */
  readonly enforced: RuleCounter[];
  /** Each rule in shadow mode forms its own group. */
  readonly shadow: RuleCounter[][];
  /** Each rule with the mode `mark` forms its own group. After a denial, no such group is charged. */
  readonly marks: RuleCounter[][];
}

export function emptyGroups(): CounterGroups {
  return { enforced: [], shadow: [], marks: [] };
}

/** Adds the counters of a rule to the group of its mode. */
export function addToGroups(groups: CounterGroups, ruleCounters: RuleCounter[]): void {
  const mode = ruleCounters[0]?.rule.mode;
  if (mode === "shadow") groups.shadow.push(ruleCounters);
  else if (mode === "mark") groups.marks.push(ruleCounters);
  else groups.enforced.push(...ruleCounters);
}

/** Returns the groups for a call to the store: the enforced group first, the `mark` groups last. */
export function storeGroupsOf({ enforced, shadow, marks }: CounterGroups): Counter[][] {
  const groups = [...shadow, ...marks].map(countersOf);
  if (enforced.length > 0) groups.unshift(countersOf(enforced));
  return groups;
}
