/** How much of a target is tried. */
export interface Effort {
  readonly cases: number;
  /** The same seed makes the same cases. */
  readonly seed: number;
}

/** What a target came to. */
export interface Outcome {
  /** Cases that were tried, up to the first that failed. */
  readonly cases: number;
  /** What the cases were, where that is worth a word. */
  readonly note?: string | undefined;
  readonly finding?: Finding | undefined;
}

/** A case in which something is not as it has to be. */
export interface Finding {
  /** The smallest case that shows it, as source. */
  readonly smallest: string;
  readonly what: string;
}

/** Something of Weir's that is held against arbitrary input. */
export interface Target {
  readonly name: string;
  /** What has to hold, in a few words. */
  readonly about: string;
  check(effort: Effort): Promise<Outcome>;
}
