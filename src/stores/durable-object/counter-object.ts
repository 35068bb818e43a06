import { DurableObject } from "cloudflare:workers";
import {
  banKey,
  type Counter,
  type GroupVerdict,
  type ReadRow,
  storedKey,
  type Tally,
  type UnusedQuota,
  windowAt,
} from "../../engine/counter.ts";
import { adjustGroup, decideGroup, resetGroup, returnUnused } from "../../engine/fixed-window.ts";
import { CounterTable } from "./counter-table.ts";
import { type Charge, OpenHolds } from "./open-holds.ts";

/** A group's verdict, and the time by which it was decided. */
export interface TimedVerdict extends GroupVerdict {
  readonly now: number;
  /** Whether a denial is for quota that may yet be given back: nobody is to remember it. */
  readonly skipCache?: boolean;
}

/** What `hold` answers: with an id to settle it by when it was admitted. */
export interface HoldVerdict extends TimedVerdict {
  readonly hold?: string;
}

/**
 * All counters of one identity, in SQLite: what was counted outlives eviction and restart.
 *
 * A row is one counter in one window, as a key in Redis is. Rows of windows that have ended are removed
 * when the next one begins, or by an alarm, which empties the object when none is left.
 */
export class CounterObject extends DurableObject<unknown> {
  readonly #holds = new OpenHolds();
  #rows = new CounterTable(this.ctx.storage, undefined);

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    ctx.blockConcurrencyWhile(async () => {
      this.#rows = new CounterTable(ctx.storage, (await ctx.storage.getAlarm()) ?? undefined);
    });
  }

  /**
   * Decides groups whose counters all live here.
   *
   * @param now the time to decide by, or undefined for this object's own
   * @param maxWaitMs how long to wait, at most and for all groups, for a hold that may yet make room
   * @param unused given back before anything is decided
   * @param id names the charge, so that `settle` can give it back: of a group that other objects have
   * charged already
   */
  async decide(
    groups: readonly (readonly Counter[])[],
    now: number | undefined,
    maxWaitMs: number,
    unused: readonly UnusedQuota[] = [],
    id?: string,
  ): Promise<TimedVerdict[]> {
    if (unused.length > 0) this.giveBack(unused, now);
    const waitEndsAt = Date.now() + maxWaitMs;
    const verdicts: TimedVerdict[] = [];
    for (const counters of groups) {
      const waitMs = verdicts.length === 0 ? maxWaitMs : waitEndsAt - Date.now();
      const verdict = await this.#take(counters, now, waitMs, id, (charges, at) => {
        if (id !== undefined) this.#holds.addFinal(id, charges, at);
      });
      verdicts.push(verdict);
    }
    return verdicts;
  }

  /**
   * Charges a group on condition. Until `settle` is called, others who find no room wait to see
   * whether it will be given back. A hold that nobody settles stays charged: a limit is kept,
   * whatever happens to the Worker that asked.
   *
   * @param id what to settle it by: the caller's, so that it can give back what it never heard of
   */
  async hold(
    counters: readonly Counter[],
    now: number | undefined,
    maxWaitMs: number,
    id: string = crypto.randomUUID(),
  ): Promise<HoldVerdict> {
    const verdict = await this.#take(counters, now, maxWaitMs, id, (charges, at) => {
      this.#holds.open(id, charges, at);
    });
    return verdict.admitted ? { ...verdict, hold: id } : verdict;
  }

  /**
   * Keeps what a decision has charged here, or gives it back. Settling twice does nothing; a charge
   * that was given back before it came is not made.
   */
  settle(id: string, keep: boolean): void {
    const held = this.#holds.settle(id, keep);
    if (!held) return;
    const read = this.#reader(held.now);
    const returned = held.charges
      .filter(({ counter }) => !hasMovedOn(counter, held.now, read))
      .map(({ counter, quota }) => ({ ...counter, cost: -quota }));
    this.adjust(returned, held.now);
  }

  /** Takes off what will not be used, where its window lasts. */
  giveBack(unused: readonly UnusedQuota[], givenNow: number | undefined): void {
    const now = givenNow ?? Date.now();
    this.#rows.write(returnUnused(unused, now, this.#reader(now)), now);
  }

  /** Adds costs without asking for room, or takes negative ones off. */
  adjust(counters: readonly Counter[], givenNow: number | undefined): Tally[] {
    const now = givenNow ?? Date.now();
    const { tallies, writes } = adjustGroup(counters, now, this.#reader(now));
    this.#rows.write(writes, now);
    return tallies;
  }

  /** Forgets what these counters have counted in the current window, and their bans. */
  reset(counters: readonly Counter[], givenNow: number | undefined): void {
    const now = givenNow ?? Date.now();
    this.#rows.write(resetGroup(counters, now), now);
    this.#holds.drop(counters, now);
  }

  override alarm(): Promise<void> {
    return this.#rows.clean(Date.now());
  }

  /** @param charged is called with what was charged before any other call can come between */
  async #take(
    counters: readonly Counter[],
    givenNow: number | undefined,
    maxWaitMs: number,
    id: string | undefined,
    charged: (charges: readonly Charge[], now: number) => void,
  ): Promise<TimedVerdict> {
    const waiting = this.#holds.waiter(maxWaitMs);
    try {
      while (true) {
        // From here to the write nothing is awaited, so no other call comes between.
        const now = givenNow ?? Date.now();
        const read = this.#reader(now);
        const { verdict, writes } = decideGroup(counters, now, read);
        if (this.#holds.isGivenUp(id)) return { ...verdict, admitted: false, now };
        // A ban holds, whatever is given back.
        const isFinal = verdict.admitted || counters.some((each) => isBanned(each, read));
        const lacksWithin = (maxAgeMs: number) =>
          isFinal ? undefined : this.#holds.lacksOf(counters, verdict.tallies, now, maxAgeMs);
        const lacks = waiting.isOver ? undefined : lacksWithin(maxWaitMs);
        if (!lacks) {
          // A client is not banned for quota that may yet be given back.
          if (lacksWithin(Number.POSITIVE_INFINITY)) {
            return { ...unbanned(verdict), now, skipCache: true };
          }
          this.#rows.write(writes, now);
          if (verdict.admitted) charged(chargesOf(counters, verdict), now);
          return { ...verdict, now };
        }
        // Less may be enough for another call than for this one.
        if (counters.some(({ cost }) => cost > 1) || counters.length > 1) waiting.passOn();
        await waiting.next(lacks);
      }
    } finally {
      waiting.end();
    }
  }

  #reader(now: number): ReadRow {
    return (key) => this.#rows.read(key, now);
  }
}

/**
 * Whether a counter that rolls over was charged in a later window. That window's grant may have made up
 * for the held quota already, and giving it back once more would admit a request too many.
 */
function hasMovedOn(counter: Counter, heldAt: number, read: ReadRow): boolean {
  const row = counter.rollsOver ? read(storedKey(counter, heldAt)) : undefined;
  return row !== undefined && row.window > windowAt(heldAt, counter).index;
}

function chargesOf(counters: readonly Counter[], { tallies }: GroupVerdict): Charge[] {
  return counters.flatMap((counter, index) => {
    const { cost, checkOnly } = counter;
    const quota = checkOnly ? 0 : (tallies[index]?.charged ?? cost);
    return quota > 0 ? [{ counter, quota }] : [];
  });
}

/** A denial that brings no ban about. */
function unbanned({ admitted, tallies }: GroupVerdict): GroupVerdict {
  return { admitted, tallies: tallies.map((tally) => ({ ...tally, banMs: 0 })) };
}

function isBanned(counter: Counter, read: ReadRow): boolean {
  return counter.banMs !== undefined && read(banKey(counter)) !== undefined;
}
