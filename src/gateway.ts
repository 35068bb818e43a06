import { waitUntil } from "cloudflare:workers";
import type { ResolvedBindings } from "./config/bindings.ts";
import type { CustomContext } from "./config/custom.ts";
import type { Config } from "./config/schema.ts";
import { createForward } from "./http/forward.ts";
import { withQuotaFields } from "./http/quota-fields.ts";
import {
  badRequestResponse,
  limitedResponse,
  pathTooLongResponse,
  undecidedResponse,
} from "./http/responses.ts";
import { isChargedByResponse } from "./limiter/counters.ts";
import { type Allowed, type Decision, type Quota, toUndecided } from "./limiter/decision.ts";
import type { Limiter } from "./limiter/limiter.ts";
import type { ResponseFacts } from "./limiter/response-charges.ts";
import { logCustomKeyFailed, logDecision } from "./log.ts";
import { type AppliedRule, createRuleApplier, type RuleApplier } from "./request/applied-rule.ts";
import { canonicalRequest, namesPlace } from "./request/canonical-request.ts";
import { CustomKeyCalls } from "./request/custom-key.ts";
import { createMatcher, type Matcher } from "./request/matcher.ts";

/**
 * Forwards a request to the origin or to an app, and returns the response.
 *
 * @param quotas the quotas of the decision; empty if no enforced rule applies, or if the request is
 * undecided
 */
export type ForwardWithQuotas = (request: Request, quotas: readonly Quota[]) => Promise<Response>;

/** The rules that apply to a request, and the decision. */
interface DecidedRequest {
  readonly appliedRules: AppliedRule[];
  /** Undefined if no rule applies to the request. */
  readonly decision?: Decision;
  /** The duration of the decision in milliseconds, not counting the functions in `custom`. */
  readonly tookMs: number;
}

const NO_QUOTAS: readonly Quota[] = [];
const NO_RULES: DecidedRequest = { appliedRules: [], tookMs: 0 };

/**
 * Handles a request from start to end. It finds the matching rules, computes the keys, decides, and
 * then forwards or answers the request.
 *
 * An isolate creates one gateway per handler. Between requests, a gateway keeps plain values only.
 */
export class Gateway {
  readonly #config: Config;
  readonly #limiter: Limiter;
  readonly #match: Matcher;
  readonly #applyRules: RuleApplier;
  readonly #forwardToOrigin: ForwardWithQuotas;

  constructor(config: Config, bindings: ResolvedBindings, limiter: Limiter) {
    const rules = config.rules.filter((rule) => rule.for !== "programs");
    this.#config = { ...config, rules };
    this.#limiter = limiter;
    this.#match = createMatcher(rules, config.caseSensitivePaths);
    this.#applyRules = createRuleApplier(config, bindings);
    this.#forwardToOrigin = createForward(bindings.origin);
  }

  /**
   * Answers a request with the origin's response, or with a response of Weir.
   *
   * @param context the second argument of the functions in `custom`
   * @param forward replaces the configured origin
   * @param routedPath the path by which an app has routed the request; undefined if no app routes
   * requests
   */
  async handle(
    request: Request,
    context: CustomContext,
    forward: ForwardWithQuotas = this.#forwardToOrigin,
    routedPath?: string,
  ): Promise<Response> {
    const decidedRequest = await this.#decide(request, context, routedPath);
    if (!decidedRequest) {
      return namesPlace(request.url) ? pathTooLongResponse(request) : badRequestResponse(request);
    }
    const { appliedRules, decision, tookMs } = decidedRequest;
    if (!decision) return forward(request, NO_QUOTAS);
    logDecision(decision);
    switch (decision.outcome) {
      case "allowed": {
        const { quotas } = decision;
        if (!appliedRules.some(({ rule }) => isChargedByResponse(rule))) {
          const response = await forward(request, quotas);
          return withQuotaFields(request, response, quotas, this.#config.headers);
        }
        const response = this.#forwardAndCharge(request, forward, appliedRules, decision, tookMs);
        // The rules are charged by the response even if the client hangs up, because the origin has
        // done the work.
        waitUntil(response.catch(() => {}));
        return await response;
      }
      case "limited":
        return limitedResponse(request, decision, this.#config.headers);
      case "undecided":
        return decision.open ? forward(request, NO_QUOTAS) : undecidedResponse(request);
      default:
        return decision satisfies never;
    }
  }

  /**
   * Looks up the rules for a request and decides the request. Never rejects.
   *
   * @returns undefined if the rules cannot be looked up, because the request names no host and
   * path, or because the path is too long
   */
  async #decide(
    request: Request,
    context: CustomContext,
    routedPath: string | undefined,
  ): Promise<DecidedRequest | undefined> {
    const { rules, caseSensitivePaths, custom, timeoutMs } = this.#config;
    const startedAt = Date.now();
    try {
      const canonical = canonicalRequest(request, caseSensitivePaths, routedPath);
      if (!canonical) return undefined;
      const matches = this.#match(canonical);
      if (matches.length === 0) return NO_RULES;
      const keys = custom?.keys;
      const customKeys =
        keys && new CustomKeyCalls(keys, request, context, timeoutMs, logCustomKeyFailed);
      const applied = this.#applyRules(canonical, matches, customKeys);
      // Most identities are cached, so `applied` is rarely a promise. An `await` costs a microtask
      // even if there is no promise, so only promises are awaited.
      const appliedRules = applied instanceof Promise ? await applied : applied;
      if (appliedRules.length === 0) return NO_RULES;
      // The time of the functions in `custom` does not shorten the deadlines of the decision and of
      // the charge. Otherwise a client that makes a function slow could leave its request undecided.
      const customMs = customKeys?.spentMs ?? 0;
      const spentMs = Date.now() - startedAt - customMs;
      const decision = await this.#limiter.decide(appliedRules, undefined, spentMs);
      return { appliedRules, decision, tookMs: Date.now() - startedAt - customMs };
    } catch (error) {
      // The error may have occurred before the rules were matched, so any rule may apply.
      return { appliedRules: [], decision: toUndecided(error, rules), tookMs: 0 };
    }
  }

  async #forwardAndCharge(
    request: Request,
    forward: ForwardWithQuotas,
    appliedRules: AppliedRule[],
    decision: Allowed,
    decidedInMs: number,
  ): Promise<Response> {
    let response: Response;
    try {
      response = await forward(request, decision.quotas);
    } catch (error) {
      // The app has thrown an error, for which frameworks and the runtime answer with 500. The
      // request is charged, because otherwise a client that makes the app fail would have no limit.
      const failure = { status: 500, headers: new Headers() };
      await this.#charge(appliedRules, decision, failure, decidedInMs);
      throw error;
    }
    const quotas = await this.#charge(appliedRules, decision, response, decidedInMs);
    return withQuotaFields(request, response, quotas, this.#config.headers);
  }

  /**
   * Charges the rules whose cost depends on the response, and returns the updated quotas. A failure
   * to charge does not affect the response.
   */
  async #charge(
    appliedRules: AppliedRule[],
    { quotas, storeFailure }: Allowed,
    response: ResponseFacts,
    decidedInMs: number,
  ): Promise<Quota[]> {
    const charge = this.#limiter
      .chargeResponse(appliedRules, response, storeFailure !== undefined)
      .catch((error): Quota[] => {
        logDecision(toUndecided(error, []));
        return [];
      });
    // The charge may take the store's whole deadline, even if the decision was slow. But the
    // decision and the charge delay the response by at most one deadline in total.
    waitUntil(charge);
    const { promise: timeout, resolve } = Promise.withResolvers<Quota[]>();
    const restMs = Math.max(0, this.#config.timeoutMs - decidedInMs);
    const timer = setTimeout(() => resolve([]), restMs);
    const updatedQuotas = await Promise.race([charge, timeout]);
    clearTimeout(timer);
    return quotas.map(
      (quota) => updatedQuotas.find(({ policy }) => policy === quota.policy) ?? quota,
    );
  }
}
