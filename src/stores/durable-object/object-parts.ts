import type { Counter } from "../../engine/counter.ts";

/** The counters of a group that are stored in one object. */
export interface ObjectPart {
  readonly identity: string;
  readonly reach: number;
  readonly counters: Counter[];
  /** The index of each counter in the group. */
  readonly positions: number[];
}

/**
 * Splits a group into one part for each object. The client's own objects come first, and the objects
 * that most clients share come last. So a client that exceeds a limit of its own is denied before it
 * takes quota, even for a moment, that others share.
 *
 * An identity always has the same reach, so all decisions call objects in the same order. A decision
 * that waits for an object has holds only in objects before it. So no two decisions wait for each
 * other.
 */
export function partsOf(group: readonly Counter[]): ObjectPart[] {
  const parts = new Map<string, ObjectPart>();
  for (const [position, counter] of group.entries()) {
    const { identity, reach = 0 } = counter;
    const part = parts.get(identity) ?? { identity, reach, counters: [], positions: [] };
    parts.set(identity, part);
    part.counters.push(counter);
    part.positions.push(position);
  }
  return [...parts.values()].sort(
    (a, b) => a.reach - b.reach || (a.identity < b.identity ? -1 : 1),
  );
}
