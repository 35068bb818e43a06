import type { Rule, Window } from "../config/rule.ts";

/** A rule that counts a request, together with the client's identity and quotas under this rule. */
export interface AppliedRule {
  readonly rule: Rule;
  /** The quotas of the client's tier, or the rule's own quotas if the client has no tier. */
  readonly windows: readonly Window[];
  readonly identity: string;
  /** How widely the identity is shared: see `Counter.reach`. */
  readonly reach?: number;
  /**
   * The cost that a value of the request determines; undefined if the rule's cost is constant, or
   * if only the response determines it.
   */
  readonly cost?: number;
  /**
   * Set only if an operator has blocked the client under this rule: when the block ends, in milliseconds
   * since the Unix epoch. Then `windows` have no quota, and the client's requests exceed the rule's limits
   * whatever they cost. No store is called for the rule.
   */
  readonly blockedUntil?: number;
  /**
   * Set only if the rule is in shadow mode and the identity is not ready in time. Then `windows`
   * and `identity` are empty. The promise resolves to the complete applied rule, or to an empty
   * list if the request is exempt.
   */
  readonly later?: Promise<readonly AppliedRule[]>;
}
