import type { HandOver } from "./protocol.ts";

/** An isolate counts as running if it has handed over sums in this time. */
export const SEEN_MS = 15_000;

/** More sources than this are not remembered; the one seen longest ago is forgotten first. */
const MAX_SOURCES = 20_000;

/** How many sources are stored, so that a hand-over is not added again after the object was evicted. */
const MAX_STORED = 1000;

/** The sources that have handed over sums lately, in the order in which they were last seen. */
export class Sources {
  readonly #sources = new Map<string, Source>();

  constructor(stored: readonly StoredSource[] = []) {
    for (const [source, sequence] of stored) {
      this.#sources.set(source, { sequence, at: 0, isolates: 0, openBreakers: 0 });
    }
  }

  /**
   * Remembers a hand-over.
   *
   * @returns whether its sums must be added: false if they were added before, or if it has none
   */
  see(handOver: HandOver, now: number): boolean {
    const { source, sequence, minutes, clients } = handOver;
    const before = this.#sources.get(source)?.sequence ?? Number.NEGATIVE_INFINITY;
    const isNew = (minutes.length > 0 || clients.length > 0) && sequence > before;
    this.#sources.delete(source);
    this.#sources.set(source, {
      sequence: isNew ? sequence : before,
      at: now,
      isolates: handOver.isolates,
      openBreakers: handOver.openBreakers ?? 0,
    });
    if (this.#sources.size > MAX_SOURCES) {
      for (const first of this.#sources.keys()) {
        this.#sources.delete(first);
        break;
      }
    }
    return isNew;
  }

  /** Returns the number of isolates that were seen lately, and how many of them have an open breaker. */
  running(now: number): { readonly isolates: number; readonly openBreakers: number } {
    let [isolates, openBreakers] = [0, 0];
    for (const source of [...this.#sources.values()].reverse()) {
      if (now - source.at > SEEN_MS) break;
      isolates += source.isolates;
      openBreakers += source.openBreakers;
    }
    return { isolates, openBreakers };
  }

  /** Returns the sequence numbers of the sources that were seen last. */
  toStored(): StoredSource[] {
    return [...this.#sources]
      .slice(-MAX_STORED)
      .filter(([, { sequence }]) => Number.isFinite(sequence))
      .map(([source, { sequence }]) => [source, sequence]);
  }
}

export type StoredSource = readonly [source: string, sequence: number];

interface Source {
  /** The number of the last hand-over whose sums were added. */
  readonly sequence: number;
  readonly at: number;
  readonly isolates: number;
  readonly openBreakers: number;
}
