import type { Counter } from "../../engine/counter.ts";
import type { Answer, Group } from "../store.ts";
import type { DecisionDeadline } from "./decision-deadline.ts";
import type { ObjectCalls, ObjectOf } from "./object-calls.ts";
import type { ObjectPart } from "./object-parts.ts";
import { answerOf } from "./timed-verdict.ts";

/**
 * Makes the calls of a decision that needs several objects. All holds of a decision have the same
 * id.
 */
export class DecisionCalls {
  readonly #objectOf: ObjectOf;
  readonly #calls: ObjectCalls;
  readonly #now: number | undefined;
  readonly #deadline: DecisionDeadline;
  readonly #holdId = crypto.randomUUID();

  constructor(
    objectOf: ObjectOf,
    calls: ObjectCalls,
    now: number | undefined,
    deadline: DecisionDeadline,
  ) {
    this.#objectOf = objectOf;
    this.#calls = calls;
    this.#now = now;
    this.#deadline = deadline;
  }

  /**
   * Charges a part and opens a hold. The object charges only the cost and no block, because a block
   * might have to be returned.
   */
  async hold({ identity, counters }: ObjectPart): Promise<PartAnswer> {
    const costs = counters.map(({ block, ...counter }) => counter);
    const { maxWaitMs } = this.#deadline;
    const verdict = await this.#objectOf(identity).hold(costs, this.#now, maxWaitMs, this.#holdId);
    return { ...answerOf(verdict, counters), hold: verdict.hold };
  }

  /** Decides the last part. The charge becomes a final hold. */
  decide({ identity, counters }: ObjectPart): Promise<Answer> {
    return this.#decide(identity, counters, this.#holdId);
  }

  /** Decides a part without charging it. */
  check({ identity, counters }: ObjectPart): Promise<Answer> {
    return this.#decide(identity, checksOf(counters));
  }

  /** Like `check`, without waiting for open holds to release quota that the part lacks. */
  async checkNow({ identity, counters }: ObjectPart): Promise<Answer> {
    const checks = checksOf(counters);
    const [verdict] = await this.#objectOf(identity).decide([checks], this.#now, 0);
    return answerOf(verdict, counters);
  }

  async #decide(identity: string, counters: Group, hold?: string): Promise<Answer> {
    const deadline = this.#deadline;
    const decided = await this.#calls.decide(identity, [counters], this.#now, [], deadline, hold);
    return decided[0] as Answer;
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

/** A part's answer. If the part is held, the answer contains the hold's id. */
export interface PartAnswer extends Answer {
  readonly hold?: string | undefined;
}

function checksOf(counters: Group): Counter[] {
  return counters.map(({ block, ...counter }) => ({ ...counter, checkOnly: true }));
}
