import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import {
  type Allowed,
  type Limited,
  NO_ENFORCED_RULE,
  type Quota,
  type RuleVerdict,
  type Undecided,
} from "../../../src/limiter/decision.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import { verdictOn } from "../../verdicts.ts";

// Decisions as the limiter makes them.

/** Applies a rule with the given fields to a client. */
export function applied(
  fields: Partial<RuleInput> & { readonly name: string },
  identity = "client",
): AppliedRule {
  const quota = "limits" in fields ? {} : { limit: 5, window: "1m" };
  const input = { ...quota, ...fields } as RuleInput;
  const rule = defineConfig({ rules: [input] }).rules[0] as Rule;
  return { rule, windows: rule.windows, identity };
}

export function allowed(fields: Partial<Allowed> = {}): Allowed {
  return { ...NO_ENFORCED_RULE, ...fields };
}

export function limited(applied: AppliedRule, fields: Partial<Limited> = {}): Limited {
  const deniedBy = verdictOn(applied, "denied");
  return {
    outcome: "limited",
    quotas: [],
    verdicts: [deniedBy],
    retryAfterMs: 1000,
    deniedBy,
    ...fields,
  };
}

export function undecided(open: boolean): Undecided {
  return { outcome: "undecided", cause: "timeout", detail: "", open };
}

export function quota(policy: string, violated: boolean): Quota {
  return { policy, violated } as Quota;
}

export function shadowDenial(applied: AppliedRule): RuleVerdict {
  return verdictOn(applied, "denied", { quotas: [quota(applied.rule.name, true)] });
}
