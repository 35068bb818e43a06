import type { Counter, Tally, UnusedQuota } from "../../engine/counter.ts";
import type { ObjectOf } from "./decision-calls.ts";
import type { DecisionDeadline } from "./decision-deadline.ts";
import type { GroupDecider } from "./group-decider.ts";
import { partsOf } from "./object-parts.ts";
import type { ShardChoice } from "./shard-choice.ts";
import type { GroupDecision } from "./two-phase.ts";

/**
 * Decides groups of counters. If a denied counter has a second shard, its group is decided again
 * with that shard. This ends when each group is admitted or has a counter that was denied in all of
 * its shards. It also ends when a repeated call fails or the deadline has passed.
 *
 * @param choices the choice of shards for each group
 */
export async function decideInShards(
  decider: GroupDecider,
  choices: readonly ShardChoice[],
  now: number | undefined,
  unused: readonly UnusedQuota[],
  deadline: DecisionDeadline,
): Promise<GroupDecision[]> {
  const countersOf = (some: readonly ShardChoice[]) => some.map(({ counters }) => counters);
  const decisions = await decider.decide(countersOf(choices), now, unused, deadline);
  const hasChanged = (choice: ShardChoice, index: number) => {
    const { admitted, tallies } = decisions[index] as GroupDecision;
    return choice.record(admitted, tallies);
  };
  let changed = choices.filter(hasChanged);
  while (changed.length > 0 && deadline.timeLeftMs > 0) {
    const retried: readonly ShardChoice[] = changed;
    const answers = await decider.decide(countersOf(retried), now, [], deadline).catch(() => []);
    // The first shard has denied the group. If the second shard does not answer, the group stays
    // denied.
    if (answers.length === 0) break;
    for (const [at, choice] of retried.entries()) {
      decisions[choices.indexOf(choice)] = answers[at] as GroupDecision;
    }
    changed = retried.filter((choice) => hasChanged(choice, choices.indexOf(choice)));
  }
  return decisions.map((decision, index) => {
    const choice = choices[index] as ShardChoice;
    // The shard that did not answer may have quota left, so the denial must not be cached.
    const skipCache = changed.includes(choice);
    return { ...decision, tallies: choice.tallies(), ...(skipCache && { skipCache }) };
  });
}

/**
 * Chooses the shards to adjust. First it reads the counts of both shards. For a positive cost it
 * then chooses the shard with more quota left, and for a negative cost the shard with less quota
 * left.
 */
export async function chooseShardsToAdjust(
  objectOf: ObjectOf,
  counters: readonly Counter[],
  now: number | undefined,
): Promise<Counter[]> {
  const shards = counters.flatMap((counter) =>
    counter.alternative ? [counter, counter.alternative] : [],
  );
  const counts = new Map<string, number>();
  await Promise.all(
    partsOf(shards).map(async (part) => {
      const checks = part.counters.map(({ alternative, ...counter }) => [
        { ...counter, cost: 0, checkOnly: true },
      ]);
      const verdicts = await objectOf(part.identity).decide(checks, now, 0);
      for (const [index, { tallies }] of verdicts.entries()) {
        counts.set((part.counters[index] as Counter).key, (tallies[0] as Tally).count);
      }
    }),
  );
  const quotaLeft = ({ key, ceiling }: Counter) => ceiling - (counts.get(key) as number);
  return counters.map((counter) => {
    const { alternative, ...own } = counter;
    if (!alternative) return counter;
    return quotaLeft(alternative) > quotaLeft(own) === counter.cost >= 0 ? alternative : own;
  });
}
