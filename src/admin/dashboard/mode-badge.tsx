import type { RuleView } from "../operations.ts";

const TEXTS: Readonly<Record<RuleView["mode"], string>> = {
  enforce: "enforced",
  shadow: "shadow",
  mark: "mark",
  off: "off",
};

/** The mode of a rule. Enforced rules, which are most, have no badge unless a page asks for it. */
export function ModeBadge({ mode, always = false }: { mode: RuleView["mode"]; always?: boolean }) {
  if (mode === "enforce" && !always) return null;
  return <span class={`badge ${mode}`}>{TEXTS[mode]}</span>;
}
