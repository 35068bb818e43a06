import type { ReplayReport } from "../replay/report.ts";

/** Whether the log states the facts without which numbers of a report are 0 but unknown. */
export interface StatedFacts {
  readonly addresses: boolean;
  readonly statuses: boolean;
}

export function statedFacts({ notes }: ReplayReport): StatedFacts {
  // A note with a rule is about that rule alone.
  const has = (code: string) => notes.some((note) => note.code === code && note.rule === undefined);
  return { addresses: !has("address-not-logged"), statuses: !has("status-not-logged") };
}
