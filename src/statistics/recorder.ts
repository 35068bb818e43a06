import type { Decision } from "../limiter/decision.ts";
import type { AppliedRule } from "../request/applied-rule.ts";

/** Adds up the sums of this isolate, until they are handed over. */
export class Recorder {
  /** Counts a request to which no rule applied. */
  recordUnmatched(): void {}

  /** Counts a decided request, and each rule that applied to it. Never throws. */
  record(_appliedRules: readonly AppliedRule[], _decision: Decision): void {}
}
