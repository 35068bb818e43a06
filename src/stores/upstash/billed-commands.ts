import { storedBanRows } from "../../engine/bans.ts";
import type { Adjustment, Demand, Tally, UnusedQuota } from "../../engine/counter.ts";
import type { Entry, EntryAnswer } from "../batch.ts";
import { type Answer, type Group, StoreError } from "../store.ts";
import type { Clock } from "./wire.ts";

/** The number of counters that one DEL removes: a DEL has up to 1,000 keys, and a counter has six in both modes. */
const COUNTERS_PER_DEL = 166;

/**
 * Estimates the commands that Upstash bills for a call: the call of the script, and each command of the script.
 * docs/cost.md lists these commands. Two rare cases are not included: a call that is sent twice because Redis has
 * lost its scripts, and a return of quota after which the count is 0.
 */
export function billedCommands(
  clock: Clock,
  entries: readonly Entry[],
  answers: readonly (readonly EntryAnswer[])[],
): number {
  let commands = commandsPerCall(clock) + commandsOfSlots(entries, answers);
  for (const [index, entry] of entries.entries()) {
    commands += commandsOfEntry(entry, answers[index] as readonly EntryAnswer[]);
  }
  return commands;
}

/**
 * A call reads the slots of each client once, unless it only returns some. It takes and renews them one by one, sets the
 * expiry of their key once, and returns all of them with one command.
 */
function commandsOfSlots(
  entries: readonly Entry[],
  answers: readonly (readonly EntryAnswer[])[],
): number {
  const [read, kept, returned] = [new Set<string>(), new Set<string>(), new Set<string>()];
  let taken = 0;
  const take = ({ key, slot }: Demand | Adjustment) => {
    if (!slot) return;
    kept.add(key);
    taken += 1;
  };
  for (const [index, { unused, adjusted, group = [] }] of entries.entries()) {
    for (const { counter } of unused) if (counter.slot) returned.add(counter.key);
    for (const each of adjusted) take(each);
    const answer = answers[index]?.[0]?.decided;
    if (answer !== undefined && "admitted" in answer && answer.admitted) group.forEach(take);
    for (const { key, slot } of [...adjusted, ...group]) if (slot !== undefined) read.add(key);
  }
  return read.size + taken + kept.size + returned.size;
}

/** The commands of a call without entries: the call of the script and, with the clock of Redis, TIME. */
export function commandsPerCall(clock: Clock): number {
  return clock === "redis" ? 2 : 1;
}

function commandsOfEntry(
  { unused, adjusted, removed, group, times }: Entry,
  answers: readonly EntryAnswer[],
): number {
  const [first] = answers;
  const isQuota = ({ counter }: UnusedQuota) => counter.slot === undefined;
  let commands = unused.filter(isQuota).length + Math.ceil(removed.length / COUNTERS_PER_DEL);
  const tallies = first?.adjusted instanceof StoreError ? [] : (first?.adjusted ?? []);
  commands += commandsOfAdjustment(adjusted, tallies);
  if (!group) return commands;
  const result = first?.decided;
  if (!result || result instanceof StoreError) return commands + group.length;
  if (times === 1) return commands + commandsOfGroup(group, result);
  return (
    commands +
    commandsOfTimes(
      group,
      answers.map(({ decided }) => decided),
    )
  );
}

/**
 * Returns the commands for equal requests. If not all of them are admitted, these are the commands of a trial charge
 * for all, of a charge for the admitted ones, and of a denial.
 */
function commandsOfTimes(
  group: readonly Demand[],
  results: readonly (Answer | StoreError | undefined)[],
): number {
  const answers = results.filter((each) => each && !(each instanceof StoreError)) as Answer[];
  const admitted = answers.findLast((answer) => answer.admitted);
  const denied = answers.find((answer) => !answer.admitted);
  const first = admitted ? commandsOfGroup(group, answers[0] as Answer) : 0;
  return first + (denied ? group.length + commandsOfGroup(group, denied) : 0);
}

/** Returns the commands for one group, without the commands of the call itself. */
export function commandsOfGroup(
  group: Group,
  { admitted, tallies }: Pick<Answer, "admitted" | "tallies">,
): number {
  let commands = 0;
  let index = 0;
  for (const counter of group) {
    const tally = tallies[index++];
    // If the group failed, its commands are unknown.
    commands += tally ? commandsOfCounter(counter, tally, admitted) : 1;
  }
  return commands;
}

/** Returns the commands for one counter of a group. @param admitted whether the group was admitted */
export function commandsOfCounter(counter: Demand, tally: Tally, admitted: boolean): number {
  const { cost, ceiling, rollsOver, checkOnly, block = 0, slot } = counter;
  if (slot !== undefined) return 0;
  const ban = counter.ban ? 1 : 0;
  if (tally.banMs > 0) return ban + 1 + storedBanRows(counter, tally);
  const isOnlyRead = checkOnly || cost === 0 || cost > ceiling;
  if (isOnlyRead) return ban + 1;
  if (rollsOver) return ban + (admitted ? 2 : 1);
  if (admitted) {
    const { charged = cost } = tally;
    const isNew = tally.count === charged;
    const isReduced = charged < Math.min(block, Math.floor(ceiling / 8));
    return ban + 1 + Number(isNew) + Number(isReduced);
  }
  // The group was denied. If this counter had quota left, it was charged first, and the charge was then undone.
  const wasCharged = tally.count + cost <= ceiling;
  const wasNew = wasCharged && tally.count === 0;
  return ban + 1 + Number(wasCharged) + Number(wasNew);
}

/** Returns the commands that adjust counters, without the commands of the call itself. */
export function commandsOfAdjustment(
  counters: readonly Adjustment[],
  tallies: readonly (Tally | undefined)[],
): number {
  let commands = 0;
  for (const [index, { cost, rollsOver, ban, slot }] of counters.entries()) {
    if (slot !== undefined) continue;
    const tally = tallies[index];
    const others = ban ? 1 : 0;
    const isFirst = tally !== undefined && cost > 0 && tally.count === cost;
    const isRemoved = tally?.count === 0;
    commands += others + (rollsOver ? 2 : 1 + Number(isFirst || isRemoved));
  }
  return commands;
}
