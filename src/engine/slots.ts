import type { Counter, Row, Slot } from "./counter.ts";

// Slots: a client's requests that are open at the same time. A counter of slots has no windows. Its count is the
// number of its open slots, and its limit is the maximum of this number. A slot that nobody gives back expires.

/** The time in milliseconds after which a client without a free slot should retry. When a slot gets free is unknown. */
export const SLOT_RETRY_MS = 1000;

/** A counter of slots. `slot` is the id of the slot that a request takes, renews or gives back; 0 for a read. */
export type SlotCounter = Counter & { readonly slot: number };

export function countsSlots<Each extends Counter>(counter: Each): counter is Each & SlotCounter {
  return counter.slot !== undefined;
}

/** Returns an id for a slot. Among the slots of one client, two equal ids are practically impossible. */
export function newSlotId(): number {
  return 1 + Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - 1));
}

export function openSlots(row: Row | undefined, now: number): readonly Slot[] {
  return row?.slots?.filter(([, expiresAt]) => expiresAt > now) ?? [];
}

/** Whether a row has this counter's slot, open or expired. */
export function hasSlot({ slot }: SlotCounter, row: Row | undefined): boolean {
  return row?.slots?.some(([id]) => id === slot) === true;
}

/** Returns the row with this counter's slot, which expires after `windowMs`. */
export function takeSlot({ slot, windowMs }: SlotCounter, row: Row | undefined, now: number): Row {
  const others = openSlots(row, now).filter(([id]) => id !== slot);
  return rowOf([...others, [slot, now + windowMs]]) as Row;
}

/** Returns the row without this counter's slot; undefined if no slot is left. */
export function freeSlot({ slot }: SlotCounter, row: Row | undefined, now: number) {
  return rowOf(openSlots(row, now).filter(([id]) => id !== slot));
}

/**
 * Returns the row in which this counter's slot expires later. A slot that has expired or was given back stays closed,
 * because a renewal may arrive after the return.
 */
export function renewSlot(counter: SlotCounter, row: Row | undefined, now: number) {
  const isOpen = openSlots(row, now).some(([id]) => id === counter.slot);
  return isOpen ? takeSlot(counter, row, now) : row;
}

function rowOf(slots: readonly Slot[]): Row | undefined {
  if (slots.length === 0) return undefined;
  const expiresAt = Math.max(...slots.map(([, each]) => each));
  return { window: 0, count: slots.length, expiresAt, slots };
}
