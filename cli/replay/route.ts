import type { Rule } from "../../src/config/rule.ts";
import type { Place } from "../../src/request/canonical-request.ts";
import type { RuleMatch } from "../../src/request/matcher.ts";

/** A path may have 75 variants, and may match hundreds of rules. Such routes are not cached. */
const MAX_CACHED_VARIANTS = 4;
const MAX_CACHED_RULES = 16;

/** The method and the host of requests. */
export interface Source {
  readonly method: string;
  readonly host: string | undefined;
  /** The route of all short paths, if no rule for this method and host reads the path. */
  readonly anyPath: Route | undefined;
}

/** What one path means under one method and host. */
export interface Route {
  readonly source: Source;
  /** Undefined if the host or the path is unclear, or if the path is too long. */
  readonly place: Place | undefined;
  /** Undefined if the matching rules depend on more than host, method and path. */
  readonly matches: readonly RuleMatch[] | undefined;
  /**
   * The matching rules, if the client's address determines the counters of all of them. Routes with the same
   * rules have the same object.
   */
  readonly byAddress: RuleSet | undefined;
  /** Whether the request counts as a preflight because the log does not show whether it is one. */
  readonly isAssumedPreflight: boolean;
}

/** Rules, in the order of the configuration. */
export type RuleSet = readonly Rule[];

/** The route of requests that the Worker refuses before it reads the rules. */
export const REFUSED = {
  place: undefined,
  matches: [],
  byAddress: undefined,
  isAssumedPreflight: false,
} as const;

/** Whether a route takes little memory. */
export function isSmall({ place, matches = [] }: Route): boolean {
  const variants = place ? place.variants.length + place.unstrippedVariants.length : 0;
  return variants <= MAX_CACHED_VARIANTS && matches.length <= MAX_CACHED_RULES;
}
