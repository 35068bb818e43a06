/** The result of adding something to a file. */
export interface Edit {
  /** The file's new text. It equals the old text if the file already has everything. */
  readonly text: string;
  /** One line for each change, for the report. */
  readonly changes: readonly string[];
  /** The steps that the starter could not take safely, with the lines to add by hand. */
  readonly byHand: readonly string[];
}

/** Returns an edit that changes nothing. */
export function unchanged(text: string, byHand: readonly string[] = []): Edit {
  return { text, changes: [], byHand };
}
