import type { Allowed } from "../limiter/decision.ts";
import type { AppliedRule } from "../request/rule-applier.ts";

/** Returns the outcome of a rule for a request that passed; undefined for a rule in shadow mode. */
export function outcomeOf(
  { rule, windows }: AppliedRule,
  { quotas, undecidedMarks }: Allowed,
): "allowed" | "marked" | "undecided" | undefined {
  if (rule.mode === "shadow") return undefined;
  if (rule.mode === "enforce") return "allowed";
  if (undecidedMarks?.some(({ policy }) => policy === rule.name)) return "undecided";
  const isOver = windows.some((window) =>
    quotas.some(({ policy, violated }) => violated && policy === window.policy),
  );
  return isOver ? "marked" : "allowed";
}
