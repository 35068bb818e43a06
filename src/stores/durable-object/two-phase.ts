import { type Counter, type Tally, windowAt } from "../../engine/counter.ts";
import { Deadline } from "../deadline.ts";
import { StoreError } from "../store-error.ts";
import { DecisionCalls, type ObjectOf } from "./decision-calls.ts";
import type { DecisionDeadline } from "./decision-deadline.ts";
import type { ObjectPart } from "./object-parts.ts";
import type { TimedVerdict } from "./timed-verdict.ts";

/** A group's verdict. Its `now` comes from the clock of the first object called. */
export interface GroupDecision {
  readonly admitted: boolean;
  /**
   * One tally for each counter, in the group's order. A tally is undefined if the counter's object
   * did not answer in time.
   */
  readonly tallies: readonly (Tally | undefined)[];
  readonly now: number;
  /** Whether the counts of a denial may include charges of open holds. */
  readonly isProvisional?: boolean;
  readonly skipCache?: boolean;
  /** Whether a dependent group was not decided, because an enforced group was denied. */
  readonly isSkipped?: boolean;
}

interface PartVerdict {
  readonly part: ObjectPart;
  readonly verdict: TimedVerdict;
}

/**
 * Decides a group whose counters are stored in several objects. All counters are charged, or none.
 *
 * Each object except the last one charges its part and opens a hold. Then the last object decides,
 * and the holds are kept or released.
 *
 * The decision runs to its end even if the client hangs up. Otherwise a hold would stay open, and
 * later requests would wait for it. Also, the request would use up quota although it never reached
 * the origin. After the deadline, no further object is called, and all charges are released, even
 * if an object has not answered yet.
 *
 * @param background lets a task run to its end although no response waits for it
 */
export function decideAcross(
  objectOf: ObjectOf,
  parts: readonly ObjectPart[],
  now: number | undefined,
  deadline: DecisionDeadline,
  background: (task: Promise<unknown>) => void,
): Promise<GroupDecision> {
  const decision = Promise.withResolvers<GroupDecision>();
  background(runToEnd(new DecisionCalls(objectOf, now, deadline), parts, deadline, decision));
  return decision.promise;
}

/** Never rejects. Settles `decision` as early as possible, and then ends the holds. */
async function runToEnd(
  calls: DecisionCalls,
  parts: readonly ObjectPart[],
  deadline: DecisionDeadline,
  decision: PromiseWithResolvers<GroupDecision>,
): Promise<void> {
  const calledParts: ObjectPart[] = [];
  const verdicts: PartVerdict[] = [];
  const timeout = startTimer(deadline.timeLeftMs);
  try {
    for (const part of parts) {
      if (timeout.timeLeftMs() <= 0) throw timeoutError(false);
      calledParts.push(part);
      const call = part === parts.at(-1) ? calls.decide(part) : calls.hold(part);
      const verdict = await Promise.race([call, timeout.promise]);
      if (typeof verdict === "boolean") throw timeoutError(verdict);
      verdicts.push({ part, verdict });
      if (!verdict.admitted) break;
    }
  } catch (error) {
    decision.reject(error);
    // The object whose call failed may still have charged its part, so its hold is released too.
    await Promise.all(calledParts.map((part) => calls.endHold(part, false)));
    return;
  } finally {
    timeout.clear();
  }
  const isAdmitted = verdicts.length === parts.length && verdicts.at(-1)?.verdict.admitted;
  if (!isAdmitted) return await endDenied(calls, parts, deadline, verdicts, decision);
  decision.resolve(mergeVerdicts(verdicts, true));
  await Promise.all(parts.slice(0, -1).map((part) => calls.endHold(part, true)));
}

/**
 * Releases the holds of a denied group. The objects that were not called yet cannot change the
 * denial, so they are called only for their counts. The decision waits at most `maxWaitMs` for
 * these counts.
 */
async function endDenied(
  calls: DecisionCalls,
  parts: readonly ObjectPart[],
  deadline: DecisionDeadline,
  verdicts: readonly PartVerdict[],
  decision: PromiseWithResolvers<GroupDecision>,
): Promise<void> {
  const charged = verdicts.filter(({ verdict }) => verdict.admitted);
  const otherVerdicts: PartVerdict[] = [];
  const pendingCalls = Promise.allSettled([
    ...charged.map(({ part }) => calls.endHold(part, false)),
    ...parts.slice(verdicts.length).map(async (part) => {
      otherVerdicts.push({ part, verdict: await calls.read(part) });
    }),
  ]);
  const timeout = startTimer(deadline.maxWaitMs);
  await Promise.race([pendingCalls, timeout.promise]);
  timeout.clear();
  decision.resolve(mergeVerdicts([...verdicts, ...otherVerdicts], false));
  await pendingCalls;
}

function mergeVerdicts(verdicts: readonly PartVerdict[], admitted: boolean): GroupDecision {
  const total = verdicts.reduce((sum, { part }) => Math.max(sum, ...part.positions), 0) + 1;
  const tallies: (Tally | undefined)[] = Array.from({ length: total }, () => undefined);
  const [first] = verdicts as [PartVerdict];
  const { now } = first.verdict;
  for (const { part, verdict } of verdicts) {
    // If the hold was released, the count in the answer still includes the cost, so the cost is
    // subtracted.
    const isReleased = !admitted && verdict.admitted && "hold" in verdict;
    for (const [index, tally] of verdict.tallies.entries()) {
      const counter = part.counters[index] as Counter;
      const { cost, checkOnly } = counter;
      tallies[part.positions[index] as number] =
        isReleased && !checkOnly
          ? { ...tally, count: tally.count - cost }
          : withWindow(tally, counter, verdict.now, now);
    }
  }
  const skipCache = verdicts.some(({ verdict }) => verdict.skipCache);
  return {
    admitted,
    tallies,
    now,
    ...(!admitted && { isProvisional: true }),
    ...(skipCache && { skipCache }),
  };
}

/** Adds the number of the window that an object has charged, if its clock shows another window. */
export function withWindow(
  tally: Tally,
  counter: Counter,
  decidedAt: number,
  groupNow: number,
): Tally {
  if (decidedAt === groupNow || tally.chargedIn !== undefined) return tally;
  const { index: chargedIn } = windowAt(decidedAt, counter);
  return chargedIn === windowAt(groupNow, counter).index ? tally : { ...tally, chargedIn };
}

function timeoutError(wasBusy: boolean): StoreError {
  return new StoreError("timeout", "several Durable Objects did not decide in time", { wasBusy });
}

/** The promise resolves at a {@link Deadline}, to whether the isolate was busy. */
function startTimer(ms: number) {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const deadline = new Deadline(ms, resolve);
  return { promise, timeLeftMs: () => deadline.timeLeftMs, clear: () => deadline.clear() };
}
