import { DurableObject } from "cloudflare:workers";
import {
  type Counter,
  decideGroup,
  EXPIRY_GRACE_MS,
  type GroupVerdict,
  type Tally,
  windowAt,
} from "../engine/fixed-window.ts";
import { Holds } from "./holds.ts";

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
 * A row is one counter in one window, as a key in Redis is. A window's first charge removes the
 * rows of that counter's ended windows; an alarm after the last window's end empties the object.
 */
export class CounterObject extends DurableObject<unknown> {
  readonly #sql = this.ctx.storage.sql;
  readonly #holds = new Holds();
  #hasTable = false;
  /** When the alarm will ring; undefined when it is not set. */
  #alarmAt: number | undefined;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    ctx.blockConcurrencyWhile(async () => {
      this.#alarmAt = (await ctx.storage.getAlarm()) ?? undefined;
    });
  }

  /**
   * Decides groups whose counters all live here.
   *
   * @param now the time to decide by, or undefined for this object's own
   * @param patienceMs how long to wait, at most, for a hold that may yet make room
   */
  async decide(
    groups: readonly (readonly Counter[])[],
    now: number | undefined,
    patienceMs: number,
  ): Promise<TimedVerdict[]> {
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
    for (const counter of held.counters) {
      this.#query(
        "UPDATE counters SET count = max(0, count - ?) WHERE key = ? AND window = ?",
        counter.cost,
        counter.key,
        windowAt(held.now, counter).index,
      );
    }
  }

  override async alarm(): Promise<void> {
    this.#alarmAt = undefined;
    this.#query("DELETE FROM counters WHERE expires_at <= ?", Date.now());
    const [{ latest }] = this.#query("SELECT max(expires_at) AS latest FROM counters") as [
      { latest: number | null },
    ];
    if (latest !== null) return this.#ringAt(latest);
    // Nothing is left, not even the table: an object without data costs nothing.
    this.#hasTable = false;
    await this.ctx.storage.deleteAll();
  }

  async #take(
    counters: readonly Counter[],
    givenNow: number | undefined,
    patienceMs: number,
  ): Promise<TimedVerdict> {
    const patienceEnds = Date.now() + patienceMs;
    while (true) {
      // From here to the charge nothing is awaited, so no other call comes between.
      const now = givenNow ?? Date.now();
      const counts = counters.map((counter) => this.#count(counter, now));
      const verdict = decideGroup(counters, counts, now);
      if (verdict.admitted) {
        counters.forEach((counter, index) => {
          this.#charge(counter, verdict.tallies[index] as Tally, now);
        });
        return { ...verdict, now };
      }
      const hope = this.#holds.hope(counters, counts, now);
      const patience = patienceEnds - Date.now();
      if (!hope || patience <= 0) return { ...verdict, now };
      await Promise.race([hope, scheduler.wait(patience)]);
    }
  }

  #count(counter: Counter, now: number): number {
    const [row] = this.#query(
      "SELECT count FROM counters WHERE key = ? AND window = ?",
      counter.key,
      windowAt(now, counter).index,
    ) as { count: number }[];
    return row?.count ?? 0;
  }

  #charge(counter: Counter, { count }: Tally, now: number): void {
    if (counter.cost === 0) return;
    const { index, endsAt } = windowAt(now, counter);
    const expiresAt = endsAt + EXPIRY_GRACE_MS;
    if (count > counter.cost) {
      this.#query(
        "UPDATE counters SET count = ? WHERE key = ? AND window = ?",
        count,
        counter.key,
        index,
      );
      return;
    }
    this.#query("DELETE FROM counters WHERE key = ? AND expires_at <= ?", counter.key, now);
    this.#query(
      "INSERT OR REPLACE INTO counters (key, window, count, expires_at) VALUES (?, ?, ?, ?)",
      counter.key,
      index,
      count,
      expiresAt,
    );
    if (this.#alarmAt === undefined) this.#ringAt(expiresAt);
  }

  /** The alarm looks for the next one to ring at itself, so it is set only when it is not. */
  #ringAt(time: number): void {
    this.#alarmAt = time;
    this.ctx.storage.setAlarm(time);
  }

  #query(sql: string, ...bindings: SqlStorageValue[]): Record<string, SqlStorageValue>[] {
    if (!this.#hasTable) {
      this.#sql.exec(
        "CREATE TABLE IF NOT EXISTS counters (key TEXT, window INTEGER, count INTEGER, expires_at INTEGER, PRIMARY KEY (key, window)) WITHOUT ROWID",
      );
      this.#hasTable = true;
    }
    return this.#sql.exec(sql, ...bindings).toArray();
  }
}
