import type { Counter } from "../../engine/counter.ts";
import type { CounterObject } from "./counter-object.ts";
import type { DecisionDeadline } from "./decision-deadline.ts";
import type { ObjectPart } from "./object-parts.ts";
import type { TimedVerdict } from "./timed-verdict.ts";

/** Returns the object that stores an identity's counters. */
export type ObjectOf = (identity: string) => DurableObjectStub<CounterObject>;

/**
 * Makes the calls of a decision that needs several objects. All holds of a decision have the same
 * id.
 */
export class DecisionCalls {
  readonly #objectOf: ObjectOf;
  readonly #now: number | undefined;
  readonly #deadline: DecisionDeadline;
  readonly #holdId = crypto.randomUUID();

  constructor(objectOf: ObjectOf, now: number | undefined, deadline: DecisionDeadline) {
    this.#objectOf = objectOf;
    this.#now = now;
    this.#deadline = deadline;
  }

  /**
   * Charges a part and opens a hold. The object charges only the cost and no block, because a block
   * might have to be returned.
   */
  async hold({ identity, counters }: ObjectPart): Promise<TimedVerdict> {
    const costs = counters.map(({ block, ...counter }) => counter);
    const { maxWaitMs } = this.#deadline;
    const verdict = await this.#objectOf(identity).hold(costs, this.#now, maxWaitMs, this.#holdId);
    return checkVerdict(verdict, counters);
  }

  /** Decides the last part. The charge becomes a final hold. */
  async decide({ identity, counters }: ObjectPart): Promise<TimedVerdict> {
    const object = this.#objectOf(identity);
    const { maxWaitMs } = this.#deadline;
    const [verdict] = await object.decide([counters], this.#now, maxWaitMs, [], this.#holdId);
    return checkVerdict(verdict, counters);
  }

  /**
   * Decides a part without charging it.
   *
   * @param maxWaitMs how long the object waits for open holds to release quota that the part lacks
   */
  async check(
    { identity, counters }: ObjectPart,
    maxWaitMs = this.#deadline.maxWaitMs,
  ): Promise<TimedVerdict> {
    const checks = counters.map(({ block, ...counter }) => ({ ...counter, checkOnly: true }));
    const [verdict] = await this.#objectOf(identity).decide([checks], this.#now, maxWaitMs);
    return checkVerdict(verdict, counters);
  }

  /**
   * Ends the hold of a part, and never rejects. If the call fails, it is repeated once. This is
   * safe, because ending a hold a second time does nothing. If the second call fails too, the
   * charge stays, so no limit is exceeded.
   */
  async endHold({ identity }: ObjectPart, keep: boolean): Promise<void> {
    const call = async () => this.#objectOf(identity).endHold(this.#holdId, keep);
    await call()
      .catch(call)
      .catch(() => {});
  }
}

/** @throws {TypeError} if an object's answer does not have a tally for each of these counters */
function checkVerdict(verdict: TimedVerdict | undefined, { length }: readonly Counter[]) {
  if (verdict?.tallies.length === length) return verdict;
  throw new TypeError("not a verdict");
}
