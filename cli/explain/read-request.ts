import type { HeaderFields } from "./header-fields.ts";

/** A request as an option describes it, before `--ip` and `--cf` are added. */
export interface ReadRequest {
  readonly method: string;
  /** A URL, or what the user wrote instead. */
  readonly url: string;
  readonly fields: HeaderFields;
  /** Undefined if there is none, or if it is unknown. */
  readonly body?: string | undefined;
  /** What was assumed or left out, as sentences. */
  readonly notes: readonly string[];
}
