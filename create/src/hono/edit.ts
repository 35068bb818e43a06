/** The result of adding something to a file. */
export interface Edit {
  /** The file's new text. It equals the old text if the file already has everything. */
  readonly text: string;
  /** One line for each change, for the report. */
  readonly changes: readonly string[];
  /**
   * The steps that the starter could not take safely, with the lines to add by hand. Without them,
   * Weir does not limit requests.
   */
  readonly byHand: readonly string[];
  /** Steps that are useful, and without which Weir limits requests all the same. */
  readonly advice: readonly string[];
}

/** Returns an edit that changes nothing. */
export function unchanged(
  text: string,
  byHand: readonly string[] = [],
  advice: readonly string[] = [],
): Edit {
  return { text, changes: [], byHand, advice };
}
