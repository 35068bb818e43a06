import type { Counter } from "../../engine/counter.ts";

/** The counters of a group that are stored in one object. */
export interface ObjectPart {
  readonly identity: string;
  readonly counters: Counter[];
  /** The index of each counter in the group. */
  readonly positions: number[];
}

/**
 * Splits a group into one part for each object. The parts are sorted by identity. So all decisions
 * call objects in the same order, and no two decisions wait for each other.
 */
export function partsOf(group: readonly Counter[]): ObjectPart[] {
  const parts = new Map<string, ObjectPart>();
  for (const [position, counter] of group.entries()) {
    const { identity } = counter;
    const part = parts.get(identity) ?? { identity, counters: [], positions: [] };
    parts.set(identity, part);
    part.counters.push(counter);
    part.positions.push(position);
  }
  return [...parts.values()].sort((a, b) => (a.identity < b.identity ? -1 : 1));
}
