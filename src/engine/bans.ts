import type { Counter, ReadRow, Row } from "./counter.ts";

/**
 * The fields of a counter that determine where its ban is stored. A rule in shadow mode has its own bans and strikes.
 * So no client is already banned when the rule is enforced.
 */
type BannedCounter = Pick<Counter, "key" | "shadow">;

/** Returns the key of the row that stores a counter's ban. */
export function banKey({ key, shadow }: BannedCounter): string {
  return shadow ? `${key}:shadow-ban` : `${key}:ban`;
}

/** Returns the key of the row that stores a counter's strikes, if its bans become longer. */
export function strikesKey({ key, shadow }: BannedCounter): string {
  return shadow ? `${key}:shadow-strikes` : `${key}:strikes`;
}

/** Returns the counter twice: as the counter of an enforced rule and of a rule in shadow mode. */
export function inBothModes<Each extends Counter>(counter: Each): Each[] {
  return [false, true].map((shadow) => ({ ...counter, shadow }));
}

/** A new ban, and the rows to store for it. */
interface NewBan {
  readonly banMs: number;
  readonly rows: readonly (readonly [key: string, row: Row])[];
}

/**
 * Begins a ban of a client that is not banned. If bans become longer, the stored number of strikes determines the
 * length, and this ban adds one strike.
 *
 * The row of a ban always expires when the ban ends. So a deploy can change a rule from one length to several
 * lengths, or back, while clients are banned.
 *
 * @param counter a counter with `banMs`
 */
export function startBan(counter: Counter, now: number, read: ReadRow): NewBan {
  const { banMs: firstMs = 0, escalation } = counter;
  const rowUntil = (count: number, expiresAt: number): Row => ({ window: 0, count, expiresAt });
  if (!escalation) return { banMs: firstMs, rows: [[banKey(counter), rowUntil(1, now + firstMs)]] };
  const { lengthsMs, forgetAfterMs } = escalation;
  const strikes = read(strikesKey(counter))?.count ?? 0;
  const banMs = lengthsMs[Math.min(strikes, lengthsMs.length - 1)] ?? firstMs;
  return {
    banMs,
    rows: [
      [banKey(counter), rowUntil(1, now + banMs)],
      [strikesKey(counter), rowUntil(strikes + 1, now + banMs + forgetAfterMs)],
    ],
  };
}
