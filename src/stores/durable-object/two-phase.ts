import { type Demand, type Tally, windowAt } from "../../engine/counter.ts";
import { SHARED_REACH } from "../../request/identity.ts";
import { type Entry, NOTHING } from "../batch.ts";
import { Deadline } from "../deadline.ts";
import { type Answer, type Group, StoreError } from "../store.ts";
import type { ObjectCalls, ObjectOf, ObjectPart } from "./object-calls.ts";

/** The deadline of a decision, which begins now. */
export class DecisionDeadline {
  readonly #startedAt = Date.now();
  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Milliseconds left; 0 or less after the deadline. The clock may step back. */
  get timeLeftMs(): number {
    return Math.min(this.#timeoutMs, this.#timeoutMs - (Date.now() - this.#startedAt));
  }
}

/** The calls of a decision that needs several objects. All of its holds have the same id. */
export class DecisionCalls {
  readonly #objectOf: ObjectOf;
  readonly #calls: ObjectCalls;
  readonly #now: number | undefined;
  readonly #holdId = crypto.randomUUID();

  constructor(objectOf: ObjectOf, calls: ObjectCalls, now: number | undefined) {
    this.#objectOf = objectOf;
    this.#calls = calls;
    this.#now = now;
  }

  /** Charges a part. The charge is a hold. Requests a block only from the object that decides last. */
  charge({ identity, counters }: ObjectPart, isFinal: boolean): Promise<Answer> {
    const group = isFinal ? counters : counters.map(({ block, ...counter }) => counter);
    return this.#decide(identity, group, { id: this.#holdId, isFinal });
  }

  /** Decides a part without charging it. */
  check({ identity, counters }: ObjectPart): Promise<Answer> {
    const group = counters.map(({ block, ...counter }) => ({ ...counter, checkOnly: true }));
    return this.#decide(identity, group);
  }

  async #decide(identity: string, group: Group, hold?: Entry["hold"]): Promise<Answer> {
    const entry = { ...NOTHING, now: this.#now, group, ...(hold && { hold }) };
    const answer = await this.#calls.run(identity, [entry])[0];
    return answer?.decided as Answer;
  }

  /**
   * Ends the hold of a part, and never rejects. If the call fails, it is repeated once. This is
   * safe, because ending a hold a second time does nothing. If the second call fails too, the
   * charge stays, so no limit is exceeded.
   *
   * @returns whether the hold has ended. An object that has restarted does not know it any more
   */
  async endHold({ identity }: ObjectPart, keep: boolean): Promise<boolean> {
    const call = async () => this.#objectOf(identity).endHold(this.#holdId, keep);
    return call()
      .catch(call)
      .then(
        (hasEnded) => hasEnded,
        () => false,
      );
  }
}

interface PartVerdict {
  readonly part: ObjectPart;
  readonly verdict: Answer;
  /** Whether the object holds quota until all objects have decided. */
  readonly isHeld?: boolean;
}

/**
 * Decides a group whose counters are stored in several objects. All objects except the last one charge their parts
 * and open holds. Then the last object decides, and the holds are kept or released.
 *
 * The answer's `now` comes from the clock of the first object called. A tally is undefined if the counter's object
 * was not asked, because another object denied the group before, or if the counter's object did not answer in time.
 *
 * While a hold is open, other requests that need its quota are denied. So the client's own objects come first. Before
 * the first hold in a shared object, the objects after it are asked whether they would deny. So a denied request has
 * held only quota of its own client, unless another request took the last shared quota between the check and the
 * charge.
 *
 * The decision runs to its end even if the client hangs up, because an open hold could deny later requests.
 * After the deadline, no further object is called, and all charges are released, even if an object has not answered
 * yet.
 *
 * @param background keeps the Worker alive until a task has ended
 */
export function decideAcross(
  calls: DecisionCalls,
  parts: readonly ObjectPart[],
  deadline: DecisionDeadline,
  background: (task: Promise<unknown>) => void,
): Promise<Answer> {
  const decision = Promise.withResolvers<Answer>();
  background(runToEnd(calls, parts, deadline, decision));
  return decision.promise;
}

/** Never rejects. Settles `decision` as early as possible, and then ends the holds. */
async function runToEnd(
  calls: DecisionCalls,
  parts: readonly ObjectPart[],
  deadline: DecisionDeadline,
  decision: PromiseWithResolvers<Answer>,
): Promise<void> {
  const last = parts.at(-1);
  const firstSharedHold = parts.findIndex(
    (part) => part !== last && part.reach >= SHARED_REACH && takesQuota(part),
  );
  /** The parts that may have been charged, in the order of the calls. */
  const charged: ObjectPart[] = [];
  const verdicts: PartVerdict[] = [];
  const timeout = startTimer(deadline.timeLeftMs);
  const late = timeout.promise.then((wasBusy) => Promise.reject(timeoutError(wasBusy)));
  // If the deadline has passed before the first call, no call waits for it.
  late.catch(() => {});
  const inTime = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    if (timeout.timeLeftMs() <= 0) throw timeoutError(false);
    return await Promise.race([call(), late]);
  };
  try {
    for (const [index, part] of parts.entries()) {
      if (index === firstSharedHold) {
        const denial = await inTime(() => firstDenial(calls, parts.slice(index + 1)));
        if (denial) {
          verdicts.push(denial);
          break;
        }
      }
      const isFinal = part === last;
      const isCharge = isFinal || takesQuota(part);
      if (isCharge) charged.push(part);
      const call = () => (isCharge ? calls.charge(part, isFinal) : calls.check(part));
      const verdict = await inTime(call);
      verdicts.push({ part, verdict, isHeld: verdict.admitted && isCharge && !isFinal });
      if (!verdict.admitted) break;
    }
  } catch (error) {
    decision.reject(error);
    // The object whose call failed may still have charged its part, so its hold is released too.
    await Promise.all(charged.map((part) => calls.endHold(part, false)));
    return;
  } finally {
    timeout.clear();
  }
  if (!verdicts.at(-1)?.verdict.admitted) {
    return await endDenied(calls, parts, deadline, verdicts, decision);
  }
  decision.resolve(mergeVerdicts(parts, verdicts, true));
  const held = verdicts.filter(({ isHeld }) => isHeld);
  await Promise.all(held.map(({ part }) => calls.endHold(part, true)));
}

/** The part of the time left that a denial may wait for the release of its holds. */
const RELEASE_SHARE = 0.25;

/**
 * Releases the holds of a denied group. The remaining objects are asked only if the request may start a ban there.
 * They are not asked for their counts alone, because a call to a new client's object creates the object. The denial
 * waits for the releases for at most {@link RELEASE_SHARE} of the time left, so that the client's next request finds
 * the quota.
 */
async function endDenied(
  calls: DecisionCalls,
  parts: readonly ObjectPart[],
  deadline: DecisionDeadline,
  verdicts: readonly PartVerdict[],
  decision: PromiseWithResolvers<Answer>,
): Promise<void> {
  const held = verdicts.filter(({ isHeld }) => isHeld);
  const notAsked = parts.filter((part) => !verdicts.some((asked) => asked.part === part));
  const banVerdicts: PartVerdict[] = [];
  let released = 0;
  const pendingCalls = Promise.allSettled([
    ...held.map(async ({ part }) => {
      if (await calls.endHold(part, false)) released += 1;
    }),
    ...notAsked.filter(mayStartBan).map(async (part) => {
      banVerdicts.push({ part, verdict: await calls.check(part) });
    }),
  ]);
  const timeout = startTimer(Math.max(0, Math.floor(deadline.timeLeftMs * RELEASE_SHARE)));
  await Promise.race([pendingCalls, timeout.promise]);
  timeout.clear();
  const answer = mergeVerdicts(parts, [...verdicts, ...banVerdicts], false);
  decision.resolve(released < held.length ? { ...answer, mayHold: true } : answer);
  await pendingCalls;
}

function takesQuota({ counters }: ObjectPart): boolean {
  return counters.some(({ cost, checkOnly }) => cost !== 0 && !checkOnly);
}

function mayStartBan({ counters }: ObjectPart): boolean {
  return counters.some(({ ban, neverBans }) => ban && !neverBans);
}

/**
 * Asks all of these objects whether they would deny their parts.
 *
 * @returns the first denial that arrives; undefined if no object denies
 * @throws an object's error, if no other object denies
 */
function firstDenial(
  calls: DecisionCalls,
  parts: readonly ObjectPart[],
): Promise<PartVerdict | undefined> {
  const first = Promise.withResolvers<PartVerdict | undefined>();
  const checks = parts.map(async (part) => {
    const verdict = await calls.check(part);
    if (!verdict.admitted) first.resolve({ part, verdict });
  });
  Promise.allSettled(checks).then((results) => {
    const failed = results.find(({ status }) => status === "rejected");
    if (failed) first.reject((failed as PromiseRejectedResult).reason);
    else first.resolve(undefined);
  });
  return first.promise;
}

function mergeVerdicts(
  parts: readonly ObjectPart[],
  verdicts: readonly PartVerdict[],
  admitted: boolean,
): Answer {
  const total = parts.reduce((sum, { positions }) => sum + positions.length, 0);
  const tallies: (Tally | undefined)[] = Array.from({ length: total }, () => undefined);
  const [first] = verdicts as [PartVerdict];
  const { now } = first.verdict;
  for (const { part, verdict, isHeld } of verdicts) {
    // The count in the answer still includes the cost of a released hold.
    const isReleased = !admitted && isHeld;
    for (const [index, tally] of verdict.tallies.entries()) {
      if (!tally) continue;
      const counter = part.counters[index] as Demand;
      const { cost, checkOnly } = counter;
      const own =
        isReleased && !checkOnly
          ? { ...tally, count: tally.count - cost }
          : withWindow(tally, counter, verdict.now, now);
      // The counts of objects that did not deny the group may include charges of open holds.
      const isUncertain = !admitted && verdict.admitted;
      tallies[part.positions[index] as number] = isUncertain ? { ...own, isUncertain } : own;
    }
  }
  return { admitted, tallies, now };
}

/**
 * Returns a tally by the time of the group. Adds the number of the window that an object has charged, if its clock
 * shows another window.
 */
function withWindow(tally: Tally, counter: Demand, decidedAt: number, groupNow: number): Tally {
  if (decidedAt === groupNow || tally.chargedIn !== undefined) return tally;
  const { index: chargedIn } = windowAt(decidedAt, counter);
  const moved = { ...tally, resetMs: Math.max(1, tally.resetMs + decidedAt - groupNow) };
  const isKnown = tally.ring || chargedIn === windowAt(groupNow, counter).index;
  return isKnown ? moved : { ...moved, chargedIn };
}

function timeoutError(wasBusy: boolean): StoreError {
  return new StoreError("timeout", "several Durable Objects did not decide in time", { wasBusy });
}

/** The promise resolves at a {@link Deadline}. Its value says whether the isolate was busy. */
function startTimer(ms: number) {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const deadline = new Deadline(ms, resolve);
  return { promise, timeLeftMs: () => deadline.timeLeftMs, clear: () => deadline.clear() };
}
