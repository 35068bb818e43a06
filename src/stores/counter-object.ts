import { DurableObject } from "cloudflare:workers";
import {
  adjustGroup,
  banKey,
  type Counter,
  decideGroup,
  type GroupVerdict,
  giveBack,
  type Read,
  resetGroup,
  type Tally,
  type Unused,
} from "../engine/fixed-window.ts";
import { Holds } from "./holds.ts";
import { Rows } from "./rows.ts";

/** A group's verdict, and the time by which it was decided. */
export interface TimedVerdict extends GroupVerdict {
  readonly now: number;
}

/** What `hold` answers: with an id to settle it by when it was admitted. */
export interface HoldVerdict extends TimedVerdict {
  readonly hold?: string;
}

/**
 * All counters of one identity, in SQLite: what was counted outlives eviction and restart.
 *
 * A row is one counter in one window, as a key in Redis is. Windows that have ended are removed
 * when the next one begins; an alarm after the last one's end empties the object.
 */
export class CounterObject extends DurableObject<unknown> {
  readonly #holds = new Holds();
  #rows = new Rows(this.ctx.storage, undefined);

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    ctx.blockConcurrencyWhile(async () => {
      this.#rows = new Rows(ctx.storage, (await ctx.storage.getAlarm()) ?? undefined);
    });
  }

  /**
   * Decides groups whose counters all live here.
   *
   * @param now the time to decide by, or undefined for this object's own
   * @param patienceMs how long to wait, at most, for a hold that may yet make room
   * @param unused given back before anything is decided
   */
  async decide(
    groups: readonly (readonly Counter[])[],
    now: number | undefined,
    patienceMs: number,
    unused: readonly Unused[] = [],
  ): Promise<TimedVerdict[]> {
    if (unused.length > 0) this.giveBack(unused, now);
    const verdicts: TimedVerdict[] = [];
    for (const counters of groups) verdicts.push(await this.#take(counters, now, patienceMs));
    return verdicts;
  }

  /**
   * Charges a group on condition. Until `settle` is called, others who find no room wait to see
   * whether it will be given back. A hold that nobody settles stays charged: a limit is kept,
   * whatever happens to the one who asked.
   */
  async hold(
    counters: readonly Counter[],
    now: number | undefined,
    patienceMs: number,
  ): Promise<HoldVerdict> {
    const verdict = await this.#take(counters, now, patienceMs);
    return verdict.admitted
      ? { ...verdict, hold: this.#holds.open(counters, verdict.now) }
      : verdict;
  }

  /** Keeps what a hold has charged, or gives it back. Settling twice does nothing. */
  settle(hold: string, keep: boolean): void {
    const held = this.#holds.close(hold);
    if (!held || keep) return;
    const charged = held.counters.filter(({ checkOnly }) => !checkOnly);
    this.adjust(
      charged.map((counter) => ({ ...counter, cost: -counter.cost })),
      held.now,
    );
  }

  /** Takes off what will not be used, where its window lasts. */
  giveBack(unused: readonly Unused[], givenNow: number | undefined): void {
    const now = givenNow ?? Date.now();
    this.#rows.write(giveBack(unused, now, this.#reader(now)), now);
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

  async #take(
    counters: readonly Counter[],
    givenNow: number | undefined,
    patienceMs: number,
  ): Promise<TimedVerdict> {
    const patienceEnds = Date.now() + patienceMs;
    while (true) {
      // From here to the write nothing is awaited, so no other call comes between.
      const now = givenNow ?? Date.now();
      const read = this.#reader(now);
      const { verdict, writes } = decideGroup(counters, now, read);
      // A hold that is given back spares a client the ban of this decision, but ends none.
      const hopeless = verdict.admitted || counters.some((each) => isBanned(each, read));
      const hope = hopeless ? undefined : this.#holds.hope(counters, verdict.tallies, now);
      const patience = patienceEnds - Date.now();
      if (!hope || patience <= 0) {
        this.#rows.write(writes, now);
        return { ...verdict, now };
      }
      await Promise.race([hope, scheduler.wait(patience)]);
    }
  }

  #reader(now: number): Read {
    return (key) => this.#rows.read(key, now);
  }
}

function isBanned(counter: Counter, read: Read): boolean {
  return counter.banMs !== undefined && read(banKey(counter)) !== undefined;
}
