import type { ResolvedBindings } from "../config/bindings.ts";
import type { KeyExpression } from "../config/key-expression.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { AppliedRule } from "./applied-rule.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import type { Claims } from "./claims.ts";
import type { CustomCalls } from "./custom-calls.ts";
import { isExempt } from "./exempt.ts";
import { cachedIdentityOf, type Identity, identityOf, type RequestContext } from "./identity.ts";
import type { RuleMatch } from "./matcher.ts";
import { createOnce } from "./once.ts";
import { bodyCostOf, customCostOf, hasCustomCost, type OnUnreadableCost } from "./request-cost.ts";
import { collectWithinGrace } from "./shadow-grace.ts";
import { windowsFor } from "./tier.ts";
import type { ClaimsReader } from "./token.ts";

/**
 * Returns the applied rules of a request, in the order of `matches`. Omits rules that exempt the
 * request.
 *
 * @param customCalls calls the functions in `custom`; undefined if the configuration has no functions
 * @param onWait called with the time for which the enforced rules have waited for rules with the mode
 * `mark`, in milliseconds. This time must not shorten the deadline of the enforced rules
 */
export type RuleApplier = (
  canonical: CanonicalRequest,
  matches: readonly RuleMatch[],
  customCalls?: CustomCalls,
  onWait?: (waitedMs: number) => void,
) => AppliedRule[] | Promise<AppliedRule[]>;

/**
 * Returns a function that checks exemptions and computes identities and tiers for the rules that
 * match a request.
 *
 * Costly work happens at most once for a request, even if several rules need it. A token is
 * verified once, a custom function is called once, and an identity is hashed once. Later requests
 * reuse an issuer's keys and the hashes of identities, but no claims and no results of custom
 * functions.
 *
 * @param readClaims verifies the request's token: see token.ts
 */
export function createRuleApplier(
  { ipv6Prefix }: Pick<Config, "ipv6Prefix">,
  { secrets, keySecret }: Pick<ResolvedBindings, "secrets" | "keySecret">,
  onUnreadableCost: OnUnreadableCost,
  readClaims: ClaimsReader,
): RuleApplier {
  const keyTexts = new WeakMap<KeyExpression, string>();
  const hashOptions = { ipv6Prefix, keySecret };

  async function applyAsync(
    canonical: CanonicalRequest,
    matches: readonly RuleMatch[],
    customCalls: CustomCalls | undefined,
    onWait: (waitedMs: number) => void,
  ): Promise<AppliedRule[]> {
    const claimsOnce = createOnce<Claims | undefined>();
    const customOnce = createOnce<string | undefined>();
    const costOnce = createOnce<Awaited<ReturnType<CustomCalls["computeCost"]>>>();
    const identityOnce = createOnce<Identity>();
    const computeCost = (name: string) =>
      costOnce(name, async () => customCalls?.computeCost(name) ?? { value: undefined });
    const shared = {
      request: canonical,
      keySecret,
      ipv6Prefix,
      readClaims: () => claimsOnce("", () => readClaims(canonical.headers)),
      computeCustom: (name: string) => customOnce(name, async () => customCalls?.computeKey(name)),
    };

    async function apply({ rule, path, params }: RuleMatch): Promise<AppliedRule[]> {
      if (rule.exempt && (await isExempt(rule.exempt, canonical, secrets))) return [];
      const context = { ...shared, path, params };
      // The cost's function starts before the functions of keys, because all functions of a request
      // share one deadline.
      const customCost = hasCustomCost(rule)
        ? customCostOf(rule, computeCost, onUnreadableCost)
        : undefined;
      const identity = await identityOnce(textOfKey(rule.key, context, keyTexts), () =>
        identityOf(rule.key, context),
      );
      const windows = await windowsFor(rule, context);
      const cost = customCost
        ? await customCost
        : bodyCostOf(rule, windows, canonical, onUnreadableCost);
      return [appliedRuleOf(rule, windows, identity, cost)];
    }

    return collectWithinGrace(
      matches.map(apply),
      (index) => (matches[index] as RuleMatch).rule.mode,
      (index, later) => ({
        rule: (matches[index] as RuleMatch).rule,
        windows: [],
        identity: "",
        later,
      }),
      onWait,
    );
  }

  return function applyRules(canonical, matches, customCalls, onWait = () => {}) {
    const appliedRules = applyFromCache(canonical, matches, hashOptions, onUnreadableCost);
    return appliedRules ?? applyAsync(canonical, matches, customCalls, onWait);
  };
}

/**
 * Applies rules whose identities are all cached, which is the usual case. This function is
 * synchronous. It does not create the objects with which `applyAsync` shares work between rules.
 *
 * @returns undefined if any identity is not cached, or if a rule has exemptions, tiers or a function
 * for its cost
 */
function applyFromCache(
  request: CanonicalRequest,
  matches: readonly RuleMatch[],
  hashOptions: Pick<RequestContext, "ipv6Prefix" | "keySecret">,
  onUnreadableCost: OnUnreadableCost,
): AppliedRule[] | undefined {
  const appliedRules: AppliedRule[] = [];
  for (const { rule, path, params } of matches) {
    if (rule.exempt || rule.tiers || hasCustomCost(rule)) return undefined;
    const identity = cachedIdentityOf(rule.key, { request, path, params, ...hashOptions });
    if (identity === undefined) return undefined;
    const { windows } = rule;
    const cost = bodyCostOf(rule, windows, request, onUnreadableCost);
    appliedRules.push(appliedRuleOf(rule, windows, identity, cost));
  }
  return appliedRules;
}

function appliedRuleOf(
  rule: Rule,
  windows: readonly Window[],
  { identity, reach }: Identity,
  cost: number | undefined,
): AppliedRule {
  return cost === undefined
    ? { rule, windows, identity, reach }
    : { rule, windows, identity, reach, cost };
}

/**
 * Returns a text that identifies a key in this request. If the keys of two rules have the same
 * text, the identities of these rules are equal. The text includes the path and its parameters if
 * the key reads them, because the path and its parameters can differ between rules.
 *
 * @param keyTexts a cache of the keys as JSON, so that each key is serialized only once
 */
function textOfKey(
  key: KeyExpression,
  { path, params }: Pick<RuleMatch, "path" | "params">,
  keyTexts: WeakMap<KeyExpression, string>,
): string {
  let text = keyTexts.get(key);
  if (text === undefined) {
    text = JSON.stringify(key);
    keyTexts.set(key, text);
  }
  const readsPath = key.some((parts) =>
    parts.some(({ kind }) => kind === "param" || kind === "path"),
  );
  return readsPath ? text + JSON.stringify([path, params]) : text;
}
