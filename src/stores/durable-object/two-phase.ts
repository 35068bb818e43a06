import type { Counter, Tally } from "../../engine/counter.ts";
import { StoreError } from "../store-error.ts";
import type { CounterObject, TimedVerdict } from "./counter-object.ts";

/** The counters of a group that live in one object, and where they stand in the group. */
export interface ObjectPart {
  readonly identity: string;
  readonly counters: Counter[];
  readonly positions: number[];
}

/** A group's verdict, by the clock of the first object that was asked. */
export interface GroupDecision {
  readonly admitted: boolean;
  /** One for each counter, in their order; undefined where an object did not say in time. */
  readonly tallies: readonly (Tally | undefined)[];
  readonly now: number;
  /** What a denial says of one object may include open holds on another. */
  readonly isProvisional?: boolean;
  readonly skipCache?: boolean;
}

export interface Deadline {
  /** What is left of it, in milliseconds. */
  timeLeftMs(): number;
}

/** The object that holds an identity's counters. */
export type ObjectOf = (identity: string) => DurableObjectStub<CounterObject>;

interface Answer {
  readonly part: ObjectPart;
  readonly verdict: TimedVerdict;
}

/**
 * How long to wait at one object, in milliseconds: for holds that may yet make room, or for what only
 * a denial's figures need. It is a part of the time that is left, so that a denial comes well within it.
 */
export function maxWaitWithin(deadline: Deadline): number {
  return Math.max(0, Math.floor(deadline.timeLeftMs() / 4));
}

/**
 * Decides a group whose counters live in several objects, all or none.
 *
 * Each object but the last charges on condition and holds that open; the last one decides; then what
 * is held is kept or given back. Every decision goes through its objects in the same order, so that no
 * two wait for each other.
 *
 * It runs to its end also when the client hangs up: a hold left open would make others wait, and quota
 * would be used up by a request that never reached the origin. When the caller has given up, no further
 * object is asked and everything is given back, also by an object that has not answered yet.
 */
export function decideAcross(
  objectOf: ObjectOf,
  parts: readonly ObjectPart[],
  now: number | undefined,
  deadline: Deadline,
  background: (task: Promise<unknown>) => void,
): Promise<GroupDecision> {
  const decision = Promise.withResolvers<GroupDecision>();
  background(runToEnd(callsFor(objectOf, now, deadline), parts, deadline, decision));
  return decision.promise;
}

/** Never rejects: what it comes to goes to `resolve` and `reject`, and what is left to settle follows. */
async function runToEnd(
  { hold, decide, look, settle }: ReturnType<typeof callsFor>,
  parts: readonly ObjectPart[],
  deadline: Deadline,
  { resolve, reject }: PromiseWithResolvers<GroupDecision>,
): Promise<void> {
  const asked: ObjectPart[] = [];
  const answers: Answer[] = [];
  const late = timer(deadline.timeLeftMs());
  try {
    for (const part of parts) {
      if (deadline.timeLeftMs() <= 0) throw tooLate();
      asked.push(part);
      const call = part === parts.at(-1) ? decide(part) : hold(part);
      const verdict = await Promise.race([call, late.over]);
      if (!verdict) throw tooLate();
      answers.push({ part, verdict });
      if (!verdict.admitted) break;
    }
  } catch (error) {
    reject(error);
    // The one that failed may have charged all the same.
    await Promise.all(asked.map((part) => settle(part, false)));
    return;
  } finally {
    late.clear();
  }

  const held = answers.filter(({ verdict }) => verdict.admitted);
  if (held.length === parts.length) {
    resolve(mergeAnswers(answers, true));
    await Promise.all(held.slice(0, -1).map(({ part }) => settle(part, true)));
    return;
  }
  // A denial is one whatever the others say, or if they say nothing: they only complete its figures.
  const others: Answer[] = [];
  const rest = Promise.allSettled([
    ...held.map(({ part }) => settle(part, false)),
    ...parts.slice(answers.length).map(async (part) => {
      others.push({ part, verdict: await look(part) });
    }),
  ]);
  const denialWait = timer(maxWaitWithin(deadline));
  await Promise.race([rest, denialWait.over]);
  denialWait.clear();
  resolve(mergeAnswers([...answers, ...others], false));
  await rest;
}

/** One decision's calls of objects. Its charges have one name, chosen here, to settle them by. */
function callsFor(objectOf: ObjectOf, now: number | undefined, deadline: Deadline) {
  const id = crypto.randomUUID();
  const names = new Map<string, string>();

  async function decide({ identity, counters }: ObjectPart): Promise<TimedVerdict> {
    const object = objectOf(identity);
    const [verdict] = await object.decide([counters], now, maxWaitWithin(deadline), [], id);
    return checked(verdict, counters);
  }

  return {
    decide,

    /** What is held may have to be given back, so it is no more than the cost. */
    async hold({ identity, counters }: ObjectPart): Promise<TimedVerdict> {
      const costs = counters.map(({ block, ...counter }) => counter);
      const verdict = await objectOf(identity).hold(costs, now, maxWaitWithin(deadline), id);
      // During a deploy an object may still run older code, which names its holds itself.
      if (verdict.hold !== undefined) names.set(identity, verdict.hold);
      return checked(verdict, counters);
    },

    /** What a part that was not asked stands at: a decision that charges nothing and waits for nobody. */
    async look({ identity, counters }: ObjectPart): Promise<TimedVerdict> {
      const checks = counters.map((counter) => ({ ...counter, checkOnly: true }));
      const [verdict] = await objectOf(identity).decide([checks], now, 0);
      return checked(verdict, counters);
    },

    /**
     * Settling twice does nothing, so a call that failed is repeated, once. A hold that cannot be
     * settled stays charged, which errs on the side of the limit.
     */
    async settle({ identity }: ObjectPart, keep: boolean): Promise<void> {
      const call = async () => objectOf(identity).settle(names.get(identity) ?? id, keep);
      await call()
        .catch(call)
        .catch(() => {});
    },
  };
}

/** @throws {TypeError} when an object's answer is something else than a verdict on these counters */
function checked(verdict: TimedVerdict | undefined, { length }: readonly Counter[]): TimedVerdict {
  if (verdict?.tallies.length === length) return verdict;
  throw new TypeError("not a verdict");
}

function mergeAnswers(answers: readonly Answer[], admitted: boolean): GroupDecision {
  const total = answers.reduce((sum, { part }) => Math.max(sum, ...part.positions), 0) + 1;
  const tallies: (Tally | undefined)[] = Array.from({ length: total }, () => undefined);
  for (const { part, verdict } of answers) {
    // What was held and given back is no longer part of the count.
    const returned = !admitted && verdict.admitted && "hold" in verdict;
    for (const [index, tally] of verdict.tallies.entries()) {
      const { cost, checkOnly } = part.counters[index] as Counter;
      tallies[part.positions[index] as number] =
        returned && !checkOnly ? { ...tally, count: tally.count - cost } : tally;
    }
  }
  const [first] = answers as [Answer];
  const skipCache = answers.some(({ verdict }) => verdict.skipCache);
  return {
    admitted,
    tallies,
    now: first.verdict.now,
    ...(!admitted && { isProvisional: true }),
    ...(skipCache && { skipCache }),
  };
}

function tooLate(): StoreError {
  return new StoreError("timeout", "several Durable Objects did not decide in time");
}

function timer(ms: number) {
  const { promise: over, resolve } = Promise.withResolvers<undefined>();
  const id = setTimeout(resolve, ms, undefined);
  return { over, clear: () => clearTimeout(id) };
}
