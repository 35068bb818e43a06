/** Options for running a target. */
export interface RunOptions {
  /** The number of cases to try. */
  readonly cases: number;
  /** The same seed generates the same cases. */
  readonly seed: number;
}

/** The result of running a target. */
export interface Outcome {
  /** The number of cases that ran, up to the first failure. */
  readonly cases: number;
  /** An explanation of the cases, if they need one. */
  readonly note?: string | undefined;
  readonly finding?: Finding | undefined;
}

/** A case in which the target's property does not hold. */
export interface Finding {
  /** The smallest case that fails, as source code. */
  readonly smallest: string;
  /** Describes the failure. */
  readonly what: string;
}

/** A part of Weir that is tested with arbitrary input. */
export interface Target {
  readonly name: string;
  /** The property that must hold, in a few words. */
  readonly about: string;
  check(options: RunOptions): Promise<Outcome>;
}
