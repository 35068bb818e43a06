import { MAX_RULES } from "./valid-hand-over.ts";

/** The name under which the sums of rules appear for which there was no slot left. */
export const OTHER_RULES = "(other)";

const DAY_MS = 24 * 60 * 60_000;
/** Rows of the statistics are kept for a shorter time, so no row has sums in a slot that is free again. */
const SLOT_MS = 400 * DAY_MS;

interface Slot {
  readonly slot: number;
  readonly name: string;
  seenAt: number;
}

/** The number of each rule, under which a row of the statistics has the rule's sums. */
export class RuleSlots {
  readonly #sql: SqlStorage;
  readonly #byName = new Map<string, Slot>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS rules (slot INTEGER PRIMARY KEY, name TEXT NOT NULL, seen_at INTEGER NOT NULL)",
    );
    const rows = sql.exec<{ slot: number; name: string; seen_at: number }>("SELECT * FROM rules");
    for (const { slot, name, seen_at } of rows) {
      this.#byName.set(name, { slot, name, seenAt: seen_at });
    }
  }

  /** Returns the slot of a rule; undefined if the rule has no sums. */
  find(name: string): number | undefined {
    return this.#byName.get(name)?.slot;
  }

  /** Returns the names of all rules with their slots. */
  all(): Iterable<Pick<Slot, "slot" | "name">> {
    return this.#byName.values();
  }

  /**
   * Returns the slot of a rule, and assigns a slot to a new rule.
   *
   * @param clear called with a slot that belonged to a rule that has not been seen for a year
   */
  slotFor(name: string, now: number, clear: (slot: number) => void): number {
    const known = this.#byName.get(name);
    if (known) {
      if (now - known.seenAt > DAY_MS) this.#put({ ...known, seenAt: now });
      return known.slot;
    }
    let slot = this.#byName.size;
    // The last slot is for the sums of all rules for which there is no slot.
    if (slot >= MAX_RULES - 1 && name !== OTHER_RULES) {
      const oldest = this.#oldest();
      if (now - oldest.seenAt < SLOT_MS) return this.slotFor(OTHER_RULES, now, clear);
      slot = oldest.slot;
      this.#byName.delete(oldest.name);
      clear(slot);
    }
    this.#put({ slot, name, seenAt: now });
    return slot;
  }

  #put(slot: Slot): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO rules VALUES (?, ?, ?)",
      slot.slot,
      slot.name,
      slot.seenAt,
    );
    this.#byName.set(slot.name, slot);
  }

  #oldest(): Slot {
    return [...this.#byName.values()].reduce((one, other) =>
      other.seenAt < one.seenAt && other.name !== OTHER_RULES ? other : one,
    );
  }
}
