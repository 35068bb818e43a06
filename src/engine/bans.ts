import type { Ban } from "../config/ban.ts";
import type { Counter, ReadRow, Row, Tally } from "./counter.ts";

/**
 * The fields of a counter that determine where its ban is stored. A rule in shadow mode has its own bans and strikes.
 * So when a deploy enforces the rule, no client is banned yet.
 */
type BannedCounter = Pick<Counter, "key" | "shadow">;

/** Returns the key of the row that stores a counter's ban. */
export function banKey({ key, shadow }: BannedCounter): string {
  return shadow ? `${key}:shadow-ban` : `${key}:ban`;
}

function strikesKey({ key, shadow }: BannedCounter): string {
  return shadow ? `${key}:shadow-strikes` : `${key}:strikes`;
}

/** Whether repeated bans become longer. The store then counts strikes. */
export function countsStrikes({ ban }: { readonly ban?: Ban | undefined }): boolean {
  return ban !== undefined && ban.lengthsMs.length > 1;
}

/** Returns the keys of the rows for a counter's bans: none, the ban, or the ban and its strikes. */
export function banKeys(counter: Counter): string[] {
  if (!counter.ban) return [];
  return countsStrikes(counter) ? [banKey(counter), strikesKey(counter)] : [banKey(counter)];
}

/**
 * Returns how many rows a decision has stored for the ban in its tally. A remaining time of a whole ban means that
 * the ban has just begun.
 */
export function storedBanRows(counter: Counter, { banMs }: Tally): number {
  return counter.ban?.lengthsMs.includes(banMs) ? banKeys(counter).length : 0;
}

/**
 * Returns the counter twice: as the counter of an enforced rule and of a rule in shadow mode, both with a ban and
 * strikes. So a reset removes all of these rows, even if the rule has no ban now. Resets ignore the lengths.
 */
export function inBothModes<Each extends Counter>(counter: Each): Each[] {
  const ban = { lengthsMs: [1, 1], forgetAfterMs: 1 };
  return [false, true].map((shadow) => ({ ...counter, shadow, ban }));
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
 * @param counter a counter with this ban
 */
export function startBan(counter: Counter, ban: Ban, now: number, read: ReadRow): NewBan {
  const { lengthsMs, forgetAfterMs } = ban;
  const strikes = countsStrikes(counter) ? (read(strikesKey(counter))?.count ?? 0) : 0;
  const banMs = lengthsMs[Math.min(strikes, lengthsMs.length - 1)] as number;
  const rowUntil = (count: number, expiresAt: number): Row => ({ window: 0, count, expiresAt });
  const rows = [rowUntil(1, now + banMs), rowUntil(strikes + 1, now + banMs + forgetAfterMs)];
  return { banMs, rows: banKeys(counter).map((key, index) => [key, rows[index] as Row]) };
}
