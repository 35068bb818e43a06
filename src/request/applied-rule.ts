import type { ResolvedBindings } from "../config/bindings.ts";
import type { KeyExpression } from "../config/key-expression.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import type { Claims } from "./claims.ts";
import type { CustomKeyCalls } from "./custom-key.ts";
import { isExempt } from "./exempt.ts";
import {
  cachedIdentityOf,
  identityOf,
  type KeyContext,
  type RequestContext,
  readKeyValue,
} from "./identity.ts";
import type { RuleMatch } from "./matcher.ts";
import { createClaimsReader } from "./token.ts";

/** A rule that counts a request, together with the client's identity and quotas under this rule. */
export interface AppliedRule {
  readonly rule: Rule;
  /** The quotas of the client's tier, or the rule's own quotas if the client has no tier. */
  readonly windows: readonly Window[];
  readonly identity: string;
  /**
   * Set only if the rule is in shadow mode and the identity is not ready in time. Then `windows`
   * and `identity` are empty. The promise resolves to the complete applied rule, or to an empty
   * list if the request is exempt.
   */
  readonly later?: Promise<readonly AppliedRule[]>;
}

/**
 * The maximum time that a request waits for its shadow rules after the identities of its enforced
 * rules are ready, in milliseconds. Hashing a key takes less time than this. A custom function that
 * calls another service takes longer.
 */
const SHADOW_GRACE_MS = 2;

/**
 * Returns the applied rules of a request, in the order of `matches`. Omits rules that exempt the
 * request.
 *
 * @param customKeys calls the functions for the keys `custom:NAME`; undefined if the configuration
 * has no functions
 */
export type RuleApplier = (
  canonical: CanonicalRequest,
  matches: readonly RuleMatch[],
  customKeys?: CustomKeyCalls,
) => AppliedRule[] | Promise<AppliedRule[]>;

/**
 * Returns a function that checks exemptions and computes identities and tiers for the rules that
 * match a request.
 *
 * Costly work happens at most once for a request, even if several rules need it. A token is
 * verified once, a custom function is called once, and an identity is hashed once. Later requests
 * reuse an issuer's keys and the hashes of identities, but no claims and no results of custom
 * functions.
 */
export function createRuleApplier(
  { jwt, ipv6Prefix, timeoutMs }: Pick<Config, "jwt" | "ipv6Prefix" | "timeoutMs">,
  { secrets, keySecret }: Pick<ResolvedBindings, "secrets" | "keySecret">,
): RuleApplier {
  const keyTexts = new WeakMap<KeyExpression, string>();
  const hashOptions = { ipv6Prefix, keySecret };
  const readClaims = jwt ? createClaimsReader(jwt, secrets, timeoutMs) : async () => undefined;

  async function applyAsync(
    canonical: CanonicalRequest,
    matches: readonly RuleMatch[],
    customKeys: CustomKeyCalls | undefined,
  ): Promise<AppliedRule[]> {
    const claimsOnce = createOnce<Claims | undefined>();
    const customOnce = createOnce<string | undefined>();
    const identityOnce = createOnce<string>();
    const shared = {
      request: canonical,
      keySecret,
      ipv6Prefix,
      readClaims: () => claimsOnce("", () => readClaims(canonical.headers)),
      computeCustom: (name: string) => customOnce(name, async () => customKeys?.compute(name)),
    };

    async function apply({ rule, path, params }: RuleMatch): Promise<AppliedRule[]> {
      if (rule.exempt && (await isExempt(rule.exempt, canonical, secrets))) return [];
      const context = { ...shared, path, params };
      const identity = await identityOnce(textOfKey(rule.key, context, keyTexts), () =>
        identityOf(rule.key, context),
      );
      return [{ rule, windows: await windowsFor(rule, context), identity }];
    }

    const results = matches.map(apply);
    if (matches.every(({ rule }) => rule.mode === "enforce")) {
      return (await Promise.all(results)).flat();
    }
    return collectWithinGrace(matches, results);
  }

  return function applyRules(canonical, matches, customKeys) {
    const appliedRules = applyFromCache(canonical, matches, hashOptions);
    return appliedRules ?? applyAsync(canonical, matches, customKeys);
  };
}

/**
 * Collects the applied rules. Shadow rules delay the enforced rules by at most `SHADOW_GRACE_MS`,
 * and errors of shadow rules do not affect the enforced rules.
 */
async function collectWithinGrace(
  matches: readonly RuleMatch[],
  results: readonly Promise<AppliedRule[]>[],
): Promise<AppliedRule[]> {
  const isShadow = (index: number) => matches[index]?.rule.mode === "shadow";
  const readyShadow: AppliedRule[][] = [];
  const shadow = results.map(async (result, index) => {
    if (isShadow(index)) readyShadow[index] = await result;
  });
  const allShadow = Promise.allSettled(shadow);
  const enforced = await Promise.all(results.map((each, index) => (isShadow(index) ? [] : each)));
  const { promise: graceOver, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, SHADOW_GRACE_MS);
  await Promise.race([allShadow, graceOver]);
  clearTimeout(timer);
  return matches.flatMap(({ rule }, index) => {
    if (!isShadow(index)) return enforced[index] as AppliedRule[];
    const later = results[index] as Promise<AppliedRule[]>;
    return readyShadow[index] ?? { rule, windows: [], identity: "", later };
  });
}

/**
 * Applies rules whose identities are all cached, which is the usual case. This function is
 * synchronous. It does not create the objects with which `applyAsync` shares work between rules.
 *
 * @returns undefined if any identity is not cached, or if a rule has exemptions or tiers
 */
function applyFromCache(
  request: CanonicalRequest,
  matches: readonly RuleMatch[],
  hashOptions: Pick<RequestContext, "ipv6Prefix" | "keySecret">,
): AppliedRule[] | undefined {
  const appliedRules: AppliedRule[] = [];
  for (const { rule, path, params } of matches) {
    if (rule.exempt || rule.tiers) return undefined;
    const identity = cachedIdentityOf(rule.key, { request, path, params, ...hashOptions });
    if (identity === undefined) return undefined;
    appliedRules.push({ rule, windows: rule.windows, identity });
  }
  return appliedRules;
}

/** Returns the quotas of the client's tier, or the rule's own quotas if it has no such tier. */
async function windowsFor(rule: Rule, context: KeyContext): Promise<readonly Window[]> {
  if (!rule.tiers) return rule.windows;
  const tier = await readKeyValue(rule.tiers.by, context);
  return (tier !== undefined && rule.tiers.windows.get(tier)) || rule.windows;
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

/**
 * Returns a function that starts a task at the first call with a name. Later calls with this name
 * return the promise of the first call. Each request needs its own function, because a request must
 * not wait for another request's promise.
 */
function createOnce<Result>(): (name: string, start: () => Promise<Result>) => Promise<Result> {
  const started = new Map<string, Promise<Result>>();
  return (name, start) => {
    const result = started.get(name) ?? start();
    started.set(name, result);
    return result;
  };
}
