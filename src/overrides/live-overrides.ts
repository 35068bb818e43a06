import type { AppliedRule } from "../request/applied-rule.ts";
import type { RuleMatch } from "../request/matcher.ts";
import type { OverrideUpdate } from "./override.ts";

/** The overrides that this isolate has, and their effect on requests. */
export class LiveOverrides {
  /** The version of the newest change that this isolate has; 0 if it has loaded nothing. */
  get version(): number {
    return 0;
  }

  update(_update: OverrideUpdate): void {}

  /** Returns the matches with the overrides of their rules. Omits rules that are off. */
  matchesOf(matches: readonly RuleMatch[]): readonly RuleMatch[] {
    return matches;
  }

  /** Returns the applied rules with the overrides of their clients. */
  clientsOf(appliedRules: AppliedRule[]): AppliedRule[] {
    return appliedRules;
  }
}
