import { waitUntil } from "cloudflare:workers";
import type { ResolvedBindings } from "./config/bindings.ts";
import type { CustomContext } from "./config/custom.ts";
import type { Config } from "./config/schema.ts";
import { type Decision, type Limited, toUndecided } from "./limiter/decision.ts";
import type { Limiter } from "./limiter/limiter.ts";
import { logCustomKeyFailed, logUnreadableCost } from "./log.ts";
import type { LiveOverrides } from "./overrides/live-overrides.ts";
import { type CanonicalRequest, canonicalRequest } from "./request/canonical-request.ts";
import { CustomCalls } from "./request/custom-calls.ts";
import { createMatcher, type Matcher, type RuleMatch } from "./request/matcher.ts";
import { type AppliedRule, createRuleApplier, type RuleApplier } from "./request/rule-applier.ts";
import { type SentNames, sentNamesOf } from "./request/sent-values.ts";
import { createClaimsReader } from "./request/token.ts";

/** The rules that apply to a request, and the decision. */
export interface DecidedRequest {
  readonly appliedRules: readonly AppliedRule[];
  /** Undefined if no rule applies to the request. */
  readonly decision?: Decision;
  /** The duration of the decision in milliseconds, not counting the functions in `custom`. */
  readonly tookMs: number;
}

/** The decision on a request to which no rule applies. */
export const NO_RULES: DecidedRequest = { appliedRules: [], tookMs: 0 };

/** Finds the rules that match a request, identifies the client, and decides the request. */
export class RequestDecider {
  readonly #config: Config;
  readonly #limiter: Limiter;
  readonly #names: SentNames;
  readonly #match: Matcher;
  readonly #applyRules: RuleApplier;
  readonly #overrides: LiveOverrides | undefined;

  /** @param overrides undefined if the Worker has no control object */
  constructor(
    config: Config,
    bindings: ResolvedBindings,
    limiter: Limiter,
    overrides: LiveOverrides | undefined,
  ) {
    this.#config = config;
    this.#limiter = limiter;
    this.#names = sentNamesOf(config.rules);
    this.#match = createMatcher(config.rules, config.caseSensitivePaths);
    const { jwt, timeoutMs } = config;
    const readClaims = jwt
      ? createClaimsReader(jwt, bindings.secrets, timeoutMs, waitUntil)
      : async () => undefined;
    this.#applyRules = createRuleApplier(config, bindings, logUnreadableCost, readClaims);
    this.#overrides = overrides;
  }

  /**
   * Looks up the rules for a request and decides the request. Never rejects.
   *
   * A decision takes at most twice `timeoutMs` from the request's arrival: once to identify the client,
   * and once for the store. docs/failure.md adds it up.
   *
   * @param arrivedAt when the request arrived, in milliseconds since the Unix epoch
   * @returns undefined if the rules cannot be looked up, because the request names no host and
   * path, or because the path is too long
   */
  async decide(
    request: Request,
    context: CustomContext,
    routedPath: string | undefined,
    arrivedAt = Date.now(),
  ): Promise<DecidedRequest | undefined> {
    const { rules, caseSensitivePaths, custom, timeoutMs } = this.#config;
    const startedAt = Date.now();
    try {
      const canonical = canonicalRequest(request, caseSensitivePaths, routedPath, this.#names);
      if (!canonical) return undefined;
      const matches = this.#matchesOf(canonical);
      if (matches.length === 0) return NO_RULES;
      const customCalls =
        (custom?.keys || custom?.costs) &&
        new CustomCalls(custom, request, context, timeoutMs, logCustomKeyFailed, arrivedAt);
      let waitedMs = 0;
      let denial: Limited | undefined;
      const applied = this.#applyRules(canonical, matches, customCalls, {
        onWait: (ms) => (waitedMs = ms),
        isDenied: (known) => {
          denial = this.#limiter.denialOf(this.#overrides?.clientsOf(known) ?? known);
          return denial !== undefined;
        },
      });
      // Most identities are cached, so `applied` is rarely a promise. An `await` costs a microtask
      // even if there is no promise, so only promises are awaited.
      const identified = applied instanceof Promise ? await applied : applied;
      const appliedRules = this.#overrides?.clientsOf(identified) ?? identified;
      if (appliedRules.length === 0) return NO_RULES;
      // The time of the functions in `custom`, and of waiting for rules with the mode `mark`, does
      // not shorten the deadlines of the decision and of the charge. Otherwise a client that makes a
      // function slow, or that sends a token with an unknown key, could leave its request undecided.
      const otherMs = (customCalls?.spentMs ?? 0) + waitedMs;
      const timeSpent = () => Math.max(0, Date.now() - startedAt - otherMs);
      if (denial) return { appliedRules, decision: denial, tookMs: timeSpent() };
      const decision = await this.#limiter.decide(appliedRules, undefined, timeSpent());
      return { appliedRules, decision, tookMs: timeSpent() };
    } catch (error) {
      // The error may have occurred before the rules were matched, so any rule may apply.
      return { appliedRules: [], decision: toUndecided(error, rules), tookMs: 0 };
    }
  }

  #matchesOf(canonical: CanonicalRequest): readonly RuleMatch[] {
    const matches = this.#match(canonical);
    return this.#overrides?.matchesOf(matches) ?? matches;
  }
}
