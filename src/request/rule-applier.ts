import type { NetworkSet } from "../config/address.ts";
import type { ResolvedBindings } from "../config/bindings.ts";
import type { CustomFunctions } from "../config/custom.ts";
import { type KeyExpression, MAX_KEY_LENGTH } from "../config/key.ts";
import type { LimitSource } from "../config/limit-source.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Exempt } from "../config/tiers.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import {
  type AskedClient,
  type ClientLimits,
  keysOf,
  sourcesIn,
  windowsOfClient,
} from "./client-limits.ts";
import {
  bodyCostOf,
  type CustomCalls,
  customCostOf,
  hasCustomCost,
  lowestCost,
  type OnUnreadableCost,
} from "./custom-calls.ts";
import { type ReadonlyHeaders, readClient } from "./headers.ts";
import {
  cachedIdentityOf,
  type IdentifiedClient,
  type Identity,
  identityOf,
  isSameText,
  type KeyContext,
  type NamedValue,
  readPart,
} from "./identity.ts";
import type { RuleMatch } from "./matcher.ts";
import { withTimeout } from "./timeout.ts";
import { type Claims, type ClaimsReader, readClaimList, readClaimNumber } from "./token.ts";

/** A rule that counts a request, with the client's identity and quotas under this rule. */
export interface AppliedRule {
  readonly rule: Rule;
  /** The quotas of the client's tier, or the rule's own quotas if the client has no tier. */
  readonly windows: readonly Window[];
  readonly identity: string;
  /** The windows without the client's own numbers, if limits of the rule have a source. */
  readonly declared?: readonly Window[];
  /** How widely the identity is shared: see `Counter.reach`. */
  readonly reach?: number;
  /** The client's tier as Weir shows and logs it; undefined if the rule has no tier for the client. */
  readonly tier?: string;
  /**
   * The cost that a value of the request determines; undefined if the rule's cost is constant or depends on the
   * response only.
   */
  readonly cost?: number;
  /**
   * The end of an operator's block of the client under this rule, in milliseconds since the Unix epoch; missing
   * without a block. During a block, `windows` have no quota, every request of the client is denied, even with a cost
   * of 0, and no store is called for the rule.
   */
  readonly blockedUntil?: number;
  /**
   * Set only if the rule is in shadow mode and the identity is not ready in time. `windows` and `identity` are then
   * empty. The promise resolves to the complete applied rule, or to an empty list if the request is exempt.
   */
  readonly pendingRules?: Promise<readonly AppliedRule[]>;
}

/** Whether a client's address is in one of the exempt networks. */
export function isExemptAddress(networks: NetworkSet, headers: ReadonlyHeaders): boolean {
  const client = networks.size > 0 ? readClient(headers) : undefined;
  return client?.kind === "address" && networks.contains(client.address);
}

/**
 * Returns the entry of `exempt` because of which a rule does not count a request: `ips`, or a header such as
 * `headers.x-probe`. Returns undefined if the rule counts the request.
 *
 * The networks are compared with the client's full address, without `ipv6Prefix`. Workers of other zones share one
 * address, so an address never exempts them. A header without a configured secret exempts no request.
 */
async function exemptionOf(
  { networks, headers }: Exempt,
  request: { readonly headers: ReadonlyHeaders },
  secrets: ReadonlyMap<string, string>,
): Promise<string | undefined> {
  if (isExemptAddress(networks, request.headers)) return "ips";
  for (const { name, value } of headers) {
    const sent = request.headers.get(name);
    const expected = typeof value === "string" ? value : secrets.get(value.secret);
    // No secret is that long. Hashing a header of 64 KiB for each rule would take long.
    if (!sent || sent.length > MAX_KEY_LENGTH) continue;
    if (expected && (await isSameText(sent, expected))) return `headers.${name}`;
  }
  return undefined;
}

/**
 * Returns the client's tier and its quotas, or only the rule's own quotas if the rule lacks this tier. The tier's name
 * is the value of the first alternative of `tiers.by` that the request has.
 */
export async function tierFor(
  rule: Rule,
  context: KeyContext,
): Promise<Pick<AppliedRule, "windows" | "tier">> {
  const { by = [], windows } = rule.tiers ?? {};
  for (const part of by[0] ?? []) {
    const present = await readPart(part, context);
    if (present) return tierNamed(rule, present.value);
    if (part.kind !== "jwt") continue;
    const names = new Set(readClaimList(await context.readClaims(), part));
    if (names.size === 0) continue;
    for (const name of windows?.keys() ?? []) if (names.has(name)) return tierNamed(rule, name);
    break;
  }
  return { windows: rule.windows };
}

/** Returns a tier of a rule and its quotas, or only the rule's own quotas if the rule lacks this tier. */
export function tierNamed(rule: Rule, tier = ""): Pick<AppliedRule, "windows" | "tier"> {
  const windows = rule.tiers?.windows.get(tier);
  const label = rule.tiers?.labels.get(tier);
  return windows && label !== undefined ? { windows, tier: label } : { windows: rule.windows };
}

/**
 * The maximum time in milliseconds that a request waits for its shadow rules after its enforced rules are ready.
 * Hashing a key takes less time. A custom function that calls another service takes longer.
 */
const SHADOW_GRACE_MS = 2;

/**
 * Collects the applied rules of a request. Shadow rules delay the other rules by at most `SHADOW_GRACE_MS`. Errors of
 * shadow rules do not affect the other rules.
 *
 * @param results the result of each rule
 * @returns the rules, and the time in milliseconds that the enforced rules have waited for rules with the mode `mark`
 */
export async function collectWithinGrace(
  rules: readonly Rule[],
  results: readonly Promise<AppliedRule[]>[],
): Promise<Applied<never>> {
  const isShadow = (_: unknown, index: number) => rules[index]?.mode === "shadow";
  let readyAt = Number.POSITIVE_INFINITY;
  Promise.all(results.filter((_, index) => rules[index]?.mode === "enforce")).then(
    () => (readyAt = Date.now()),
    () => {},
  );
  const ready: AppliedRule[][] = [];
  const collected = results.map(async (result, index) => {
    ready[index] = await result;
  });
  const allShadow = Promise.allSettled(collected.filter(isShadow));
  await Promise.all(collected.filter((each, index) => !isShadow(each, index)));
  const waitedMs = Math.max(0, Date.now() - readyAt);
  if (rules.some(isShadow)) await withTimeout(allShadow, SHADOW_GRACE_MS, () => {});
  const applied = results.flatMap(
    (pendingRules, index) =>
      ready[index] ?? { rule: rules[index] as Rule, windows: [], identity: "", pendingRules },
  );
  return { rules: applied, waitedMs };
}

/** The rules that count a request, in the order of the matches. Rules that exempt the request are missing. */
interface Applied<Denial> {
  readonly rules: readonly AppliedRule[];
  /** The denial by some rules because of which the others were not applied. */
  readonly denial?: Denial;
  /** See {@link collectWithinGrace}. This time must not shorten the deadline of the enforced rules. */
  readonly waitedMs: number;
}

/**
 * Decides by the rules that are known before a token is verified or a function in `custom` is called. A rule whose cost
 * a function determines has the lowest cost that the function may return.
 *
 * @returns a denial if no other rule need be known
 */
export type DenialOf<Denial> = (known: readonly AppliedRule[]) => Denial | undefined;

export type ApplyTrace = (rule: Rule, found: ClientTrace) => void;

export interface ClientTrace {
  /** The entry of `exempt` because of which the rule does not count the request. */
  readonly exemption?: string;
  /** The value of each element of the rule's key. */
  readonly values?: readonly NamedValue[];
}

/** The sources of the values that are not in the request itself. */
interface Sources extends Pick<KeyContext, "readClaims" | "computeCustom"> {
  /** Returns the cost of a request under a rule whose cost a function determines. */
  readonly costOf: (rule: Rule) => Promise<number | undefined>;
  /** Returns the number of a client by a function; undefined if it has none. */
  readonly limitOf: (source: LimitSource, client: AskedClient) => Promise<number | undefined>;
}

/**
 * The maximum time in milliseconds that a request waits for its claims before the functions in `custom` are called.
 * Verifying a token takes less time. Fetching an issuer's keys takes longer.
 */
const CLAIMS_GRACE_MS = 5;

/** The parts that all requests share. */
interface SharedParts extends Pick<ResolvedBindings, "secrets"> {
  readonly ipv6Prefix: number;
  readonly keySecret: string | undefined;
  readonly readClaims: ClaimsReader;
  readonly onUnreadableCost: OnUnreadableCost;
  readonly trace: ApplyTrace | undefined;
  readonly costs: CustomFunctions["costs"];
  readonly limits: ClientLimits;
  /** Whether a client's own numbers under a rule have no effect. */
  readonly needsNoNumbers: (rule: Rule, identity: string) => boolean;
}

/**
 * Applies the rules that match one request: checks exemptions, and computes identities and tiers.
 *
 * Slow work happens at most once for a request: a token is verified once, and a custom function is called once.
 * Later requests reuse an issuer's keys, the hashes of identities, and the clients' own limits. They never reuse
 * claims or results of other custom functions.
 */
export class RuleApplier {
  readonly #shared: SharedParts;
  readonly #canonical: CanonicalRequest;
  readonly #matches: readonly RuleMatch[];
  readonly #sources: Sources;
  /** The applied rules known so far, by the index of their match. */
  readonly #known: (AppliedRule[] | undefined)[] = [];
  /** Ask for the numbers of known rules that are no longer fresh, by the index of their match. */
  readonly #renewals: { readonly index: number; readonly renew: () => unknown }[] = [];

  constructor(
    shared: SharedParts,
    canonical: CanonicalRequest,
    matches: readonly RuleMatch[],
    customCalls: CustomCalls | undefined,
  ) {
    this.#shared = shared;
    this.#canonical = canonical;
    this.#matches = matches;
    let claims: Promise<Claims | undefined> | undefined;
    const computeCost = async (name: string) => customCalls?.computeCost(name) ?? {};
    this.#sources = {
      readClaims: () => (claims ??= shared.readClaims(canonical.headers)),
      computeCustom: async (name) => customCalls?.computeKey(name),
      costOf: (rule) => customCostOf(rule, computeCost, shared.onUnreadableCost),
      limitOf: async (...asked) => customCalls?.limitOf(shared.limits, ...asked),
    };
  }

  /** @param isCovered whether rules certainly admit the request without a call to the store */
  async apply<Denial>(
    denialOf: DenialOf<Denial>,
    isCovered: (known: readonly AppliedRule[]) => boolean,
  ): Promise<Applied<Denial>> {
    const denied = await this.#denied(denialOf);
    if (denied) return denied;
    if (this.#renewals.length > 0) {
      // A request that is decided from memory waits for no function.
      const isWaiting = !this.#areAllKnown || !isCovered(this.#known.flatMap((each) => each ?? []));
      for (const { index, renew } of this.#renewals) {
        if (isWaiting) this.#known[index] = undefined;
        else renew();
      }
    }
    return this.#applyAll();
  }

  get #areAllKnown(): boolean {
    return this.#matches.every((_, index) => this.#known[index]);
  }

  /**
   * Returns the rules that are known without the functions in `custom`, if they deny the request. If some of them
   * deny it even without the token, the token is not verified.
   */
  async #denied<Denial>(denialOf: DenialOf<Denial>): Promise<Applied<Denial> | undefined> {
    const deniedBy = (rules: readonly AppliedRule[]) => {
      const denial = denialOf(rules);
      return denial && { rules, denial, waitedMs: 0 };
    };
    const needsFunction = this.#matches.some(({ rule }) => needs(rule, "custom"));
    const needsToken = this.#matches.some(({ rule }) => needs(rule, "jwt"));
    if (!needsFunction && !needsToken) return undefined;
    const denied = deniedBy(await this.#applyKnown(notYet));
    if (denied || !needsFunction || !needsToken) return denied;
    const claims = withTimeout(this.#sources.readClaims(), CLAIMS_GRACE_MS, notYet);
    // If no rule reads the claims, no other code handles a rejection.
    claims.catch(() => {});
    return deniedBy(await this.#applyKnown(() => claims));
  }

  #applyAll(): Promise<Applied<never>> {
    const matches = this.#matches;
    const results = matches.map(async (match, index) => {
      const known = this.#known[index];
      const [rule] = known ?? [];
      return known && !(rule && hasCustomCost(match.rule))
        ? known
        : this.#applyRule(match, this.#sources, rule);
    });
    const rules = matches.map(({ rule }) => rule);
    return collectWithinGrace(rules, results);
  }

  /** Applies the rules that need no function in `custom` and no other claims than the given ones. */
  async #applyKnown(readClaims: Sources["readClaims"]): Promise<AppliedRule[]> {
    const { costs } = this.#shared;
    const costOf = async ({ cost }: Rule) => lowestCost(cost, costs);
    await Promise.all(
      this.#matches.map(async (match, index) => {
        const limitOf = async (source: LimitSource, client: AskedClient) => {
          const known = this.#shared.limits.knownOf(source, client.identity);
          // Memory would deny a limit of 0 for ever, without asking again.
          const isOldZero = !known?.isFresh && (known?.number ?? source.default) === 0;
          if (!known || isOldZero) throw NOT_YET;
          const renew = () => this.#sources.limitOf(source, client);
          if (!known.isFresh) this.#renewals.push({ index, renew });
          return known.number;
        };
        const sources = { readClaims, computeCustom: notYet, costOf, limitOf };
        // If a rule fails here, it is applied again later.
        this.#known[index] ??= await this.#applyRule(match, sources).catch(() => undefined);
      }),
    );
    return this.#known.flatMap((each) => each ?? []);
  }

  /** @param known the rule without the cost that a function determines, if it is known */
  async #applyRule(
    { rule, path, params }: RuleMatch,
    sources: Sources,
    known?: AppliedRule,
  ): Promise<AppliedRule[]> {
    const { secrets, onUnreadableCost, ipv6Prefix, keySecret, trace, needsNoNumbers } =
      this.#shared;
    const request = this.#canonical;
    const exemption = !known && rule.exempt && (await exemptionOf(rule.exempt, request, secrets));
    if (exemption) {
      trace?.(rule, { exemption });
      return [];
    }
    const context = { request, ipv6Prefix, keySecret, ...sources, path, params };
    // The cost's function starts before the functions of keys, because they all share one deadline.
    const customCost = hasCustomCost(rule) ? sources.costOf(rule) : undefined;
    const identified = known ?? (await identityOf(rule.key, context));
    if ("values" in identified) trace?.(rule, { values: identified.values });
    const { identity, reach = 0 } = identified;
    const tiered = known ?? (await tierFor(rule, context));
    const declared = known?.declared ?? tiered.windows;
    const windows =
      "values" in identified && rule.readsLimits && !needsNoNumbers(rule, identified.identity)
        ? await this.#windowsOf(rule, declared, identified, sources)
        : (known?.windows ?? declared);
    const cost = customCost
      ? await customCost
      : bodyCostOf(rule, windows, request, onUnreadableCost);
    const applied = appliedRuleOf(rule, windows, { identity, reach }, cost);
    const { tier } = tiered;
    const own = tier === undefined ? applied : { ...applied, tier };
    return [windows === declared ? own : { ...own, declared }];
  }

  /** Returns the windows with the numbers of a client. */
  #windowsOf(
    { key }: Rule,
    declared: readonly Window[],
    { identity, values }: IdentifiedClient,
    { readClaims, limitOf }: Sources,
  ): Promise<readonly Window[]> {
    return windowsOfClient(declared, async (source) => {
      const { from } = source;
      if (from.kind === "jwt") {
        const claims = await readClaims();
        const number = claims && readClaimNumber(claims, from);
        if (typeof number !== "string") return number;
        this.#shared.limits.onUnreadable(`jwt:${from.name}`, number, identity);
        return undefined;
      }
      const keys = keysOf(key, values);
      return keys && limitOf(source, { identity, keys });
    });
  }
}

const NOT_YET = new Error("not yet");

/** Replaces a source that must not be read yet. */
function notYet(): Promise<never> {
  return Promise.reject(NOT_YET);
}

/** Whether a rule may read the token, or call a function in `custom`. */
function needs(rule: Rule, kind: "jwt" | "custom"): boolean {
  const reads = (key: KeyExpression | undefined) =>
    key?.some((parts) => parts.some((part) => part.kind === kind)) === true;
  if (reads(rule.key) || reads(rule.tiers?.by)) return true;
  if (kind === "custom" && hasCustomCost(rule)) return true;
  if (!rule.readsLimits) return false;
  const all = [rule.windows, ...(rule.tiers?.windows.values() ?? [])].flat();
  return sourcesIn(all).some(({ from }) => from.kind === kind);
}

/**
 * Applies rules whose identities are all cached, which is the usual case. Avoids the objects with which
 * {@link RuleApplier} shares work between rules.
 *
 * @returns undefined if any identity is not cached, or if a rule has exemptions, tiers or a function for its cost
 */
export function applyFromCache(
  request: CanonicalRequest,
  matches: readonly RuleMatch[],
  { ipv6Prefix, keySecret, onUnreadableCost }: SharedParts,
): AppliedRule[] | undefined {
  const appliedRules: AppliedRule[] = [];
  for (const { rule, path, params } of matches) {
    if (rule.exempt || rule.tiers || rule.readsLimits || hasCustomCost(rule)) return undefined;
    const context = { request, path, params, ipv6Prefix, keySecret };
    const identity = cachedIdentityOf(rule.key, context);
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
