import type { ResolvedBindings } from "../config/bindings.ts";
import type { CustomContext } from "../config/custom-functions.ts";
import { rulesInMode } from "../config/deployment-mode.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { overrideId } from "../overrides/override.ts";
import { type AppliedRule, createRuleApplier } from "../request/applied-rule.ts";
import { type CanonicalRequest, canonicalRequest } from "../request/canonical-request.ts";
import { CustomCalls } from "../request/custom-calls.ts";
import { createMatcher, type RuleMatch } from "../request/matcher.ts";
import type { CurrentOverrides } from "./current-overrides.ts";
import { type DescribedRequest, type Explanation, OperationError } from "./operations.ts";

/** What an explanation needs of an isolate. */
export interface ExplainContext {
  readonly config: Config;
  readonly bindings: ResolvedBindings;
  readonly limiter: Limiter;
  /** The second argument of the functions in `custom`. */
  readonly custom: CustomContext;
}

type ExplainedRule = Explanation["rules"][number];

/**
 * Explains which rules apply to a described request, and how it would be decided now. Takes no quota. The
 * functions in `custom` are called as for a real request.
 *
 * @throws {OperationError} ("invalid") if the description is no request
 */
export async function explain(
  described: DescribedRequest,
  context: ExplainContext,
  overrides: CurrentOverrides,
): Promise<Explanation> {
  const { config, bindings, limiter } = context;
  const request = toRequest(described);
  const canonical = canonicalRequest(request, config.caseSensitivePaths);
  if (!canonical) throw invalid("url", "must have a host, and a path of at most 16 KiB.");
  const applied: AppliedRule[] = [];
  const rules: ExplainedRule[] = [];
  const active = new Set(rulesInMode(config.rules, bindings.mode).map(({ name }) => name));
  for (const rule of config.rules) {
    const inMode = rulesInMode([rule], bindings.mode)[0] ?? rule;
    const why = active.has(rule.name)
      ? whyNotMatched(rule, canonical, config)
      : "WEIR_MODE is off, so no rule applies.";
    const found =
      why === undefined ? await apply(inMode, canonical, request, context, overrides) : why;
    if (typeof found === "string") {
      rules.push({ rule: rule.name, applies: false, why: found });
      continue;
    }
    applied.push(found);
    rules.push(await explainApplied(found, limiter, overrides));
  }
  if (applied.length === 0) return { outcome: "unmatched", rules };
  const { outcome } = await limiter.decide(applied, { checkOnly: true });
  return { outcome, rules };
}

function toRequest({ method, url, headers, cf }: DescribedRequest): Request {
  try {
    const init: RequestInit<IncomingRequestCfProperties> = { method };
    if (headers) init.headers = headers;
    if (cf) init.cf = cf as unknown as IncomingRequestCfProperties;
    return new Request(url, init);
  } catch {
    throw invalid("url", "must be an absolute URL, with a valid method and valid header fields.");
  }
}

function invalid(path: string, message: string): OperationError {
  return new OperationError("invalid", `${path} ${message}`, [{ path, message }]);
}

/** @returns undefined if the rule matches */
function whyNotMatched(
  rule: Rule,
  canonical: CanonicalRequest,
  config: Config,
): string | undefined {
  if (rule.for === "programs") return "It counts only calls of programs.";
  const matches = (match: Rule["match"]) =>
    createMatcher([{ ...rule, match }], config.caseSensitivePaths)(canonical).length > 0;
  if (matches(rule.match)) return undefined;
  const { except, ...conditions } = rule.match;
  const failed = Object.entries(conditions).flatMap(([name, value]) =>
    value === undefined || matches({ [name]: value }) ? [] : `match.${name}`,
  );
  if (failed.length > 0) return `The request does not fulfil ${failed.join(", ")}.`;
  if (except) return "The request fulfils match.except.";
  return "The request does not fulfil match.";
}

/** @returns the applied rule, or the reason why the rule does not apply */
async function apply(
  rule: Rule,
  canonical: CanonicalRequest,
  request: Request,
  { config, bindings, custom }: ExplainContext,
  { live }: CurrentOverrides,
): Promise<AppliedRule | string> {
  const matches = createMatcher([rule], config.caseSensitivePaths)(canonical);
  const [match] = live.matchesOf(matches) as readonly RuleMatch[];
  if (!match) return "An override has turned the rule off.";
  const ignore = () => {};
  const calls =
    config.custom && new CustomCalls(config.custom, request, custom, config.timeoutMs, ignore);
  // A rule in shadow mode may be identified later, so it is identified as an enforced rule.
  const enforced: RuleMatch = { ...match, rule: { ...match.rule, mode: "enforce" } };
  const [applied] = await createRuleApplier(config, bindings, ignore)(canonical, [enforced], calls);
  if (!applied) return "The request fulfils exempt.";
  const [changed] = live.clientsOf([{ ...applied, rule: match.rule }]);
  return changed ?? "An override exempts the client.";
}

async function explainApplied(
  applied: AppliedRule,
  limiter: Limiter,
  { byId }: CurrentOverrides,
): Promise<ExplainedRule> {
  const { rule, identity: client } = applied;
  const [state] = await limiter.clients.read([applied]);
  const override =
    byId.get(overrideId({ rule: rule.name, client })) ?? byId.get(overrideId({ rule: rule.name }));
  return {
    rule: rule.name,
    applies: true,
    why: rule.mode === "enforce" ? "It matches." : `It matches, with mode: "${rule.mode}".`,
    client,
    quotas: state?.quotas ?? [],
    ...(override && { override }),
  };
}
