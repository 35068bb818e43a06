import { waitUntil } from "cloudflare:workers";
import { ChargedForward, type ForwardWithQuotas } from "./charged-forward.ts";
import type { ResolvedBindings } from "./config/bindings.ts";
import type { CustomContext } from "./config/custom-functions.ts";
import type { Config } from "./config/schema.ts";
import { customDenial } from "./http/custom-denial.ts";
import { createForward } from "./http/forward.ts";
import { withOriginFields } from "./http/origin-fields.ts";
import { withQuotaFields } from "./http/quota-fields.ts";
import {
  badRequestResponse,
  limitedResponse,
  pathTooLongResponse,
  undecidedResponse,
} from "./http/responses.ts";
import { type Decision, type Limited, type Quota, toUndecided } from "./limiter/decision.ts";
import type { Limiter } from "./limiter/limiter.ts";
import { isUnchargedMark } from "./limiter/marks.ts";
import { dependsOnResponse } from "./limiter/rule-cost.ts";
import {
  logCustomKeyFailed,
  logCustomResponseFailed,
  logDecision,
  logUnreadableCost,
} from "./log.ts";
import { type AppliedRule, createRuleApplier, type RuleApplier } from "./request/applied-rule.ts";
import { canonicalRequest, namesPlace } from "./request/canonical-request.ts";
import { CustomCalls } from "./request/custom-calls.ts";
import { createMatcher, type Matcher } from "./request/matcher.ts";

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
  readonly #chargedForward: ChargedForward;
  /** Whether every configured origin is a server, and not another Worker. */
  readonly #isOriginServer: boolean;
  /**
   * Whether the deployment's mode lets every request pass, even a request that Weir cannot read.
   */
  readonly #neverDenies: boolean;

  constructor(config: Config, bindings: ResolvedBindings, limiter: Limiter) {
    const rules = config.rules.filter((rule) => rule.for !== "programs");
    this.#config = { ...config, rules };
    this.#limiter = limiter;
    this.#match = createMatcher(rules, config.caseSensitivePaths);
    this.#applyRules = createRuleApplier(config, bindings, logUnreadableCost);
    const forward = createForward(bindings);
    this.#forwardToOrigin = (request, _quotas, isRaw) => forward(request, isRaw);
    this.#isOriginServer = [bindings.origin, ...bindings.origins.values()].every(
      ({ kind }) => kind !== "binding",
    );
    this.#neverDenies = bindings.mode !== "enforce";
    this.#chargedForward = new ChargedForward(config, limiter);
  }

  /**
   * Answers a request with the origin's response, or with a response of Weir.
   *
   * @param context the second argument of the functions in `custom`
   * @param send replaces the configured origin
   * @param routedPath the path by which an app has routed the request; undefined if no app routes
   * requests
   */
  async handle(
    request: Request,
    context: CustomContext,
    send: ForwardWithQuotas = this.#forwardToOrigin,
    routedPath?: string,
  ): Promise<Response> {
    const decidedRequest =
      (await this.#decide(request, context, routedPath)) ?? (this.#neverDenies && NO_RULES);
    if (!decidedRequest) {
      return namesPlace(request.url) ? pathTooLongResponse(request) : badRequestResponse(request);
    }
    const { appliedRules, decision, tookMs } = decidedRequest;
    const forward: ForwardWithQuotas = this.#config.tellsOrigin
      ? (admitted, quotas, isRaw) =>
          send(withOriginFields(admitted, appliedRules, quotas), quotas, isRaw)
      : send;
    if (!decision) return forward(request, NO_QUOTAS);
    logDecision(decision);
    switch (decision.outcome) {
      case "allowed": {
        const { quotas } = decision;
        const chargedRules = this.#config.tellsOrigin
          ? appliedRules.filter((each) => !isUnchargedMark(each, quotas))
          : appliedRules;
        if (!chargedRules.some(({ rule }) => dependsOnResponse(rule))) {
          const response = await forward(request, quotas);
          return withQuotaFields(request, response, quotas, this.#config.headers);
        }
        const admitted = {
          request,
          context,
          appliedRules: chargedRules,
          decision,
          decidedInMs: tookMs,
          isLengthExact: this.#isOriginServer && send === this.#forwardToOrigin,
        };
        const response = this.#chargedForward.send(admitted, forward);
        // The rules are charged by the response even if the client hangs up, because the origin has
        // done the work.
        waitUntil(response.catch(() => {}));
        return await response;
      }
      case "limited":
        return this.#deny(request, decision, context);
      case "undecided":
        return decision.open ? forward(request, NO_QUOTAS) : undecidedResponse(request);
      default:
        return decision satisfies never;
    }
  }

  /** Answers a denied request. */
  #deny(request: Request, limited: Limited, context: CustomContext): Response | Promise<Response> {
    const { headers: style, custom, timeoutMs } = this.#config;
    const { response } = limited.rule;
    const name = response && "custom" in response ? response.custom : undefined;
    const create = name === undefined ? undefined : custom?.responses?.get(name);
    if (name === undefined || !create) return limitedResponse(request, limited, style);
    const denialFunction = { name, create, timeoutMs, style };
    return customDenial(request, limited, context, denialFunction, logCustomResponseFailed);
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
      const customCalls =
        (custom?.keys || custom?.costs) &&
        new CustomCalls(custom, request, context, timeoutMs, logCustomKeyFailed);
      let waitedMs = 0;
      const applied = this.#applyRules(canonical, matches, customCalls, (ms) => (waitedMs = ms));
      // Most identities are cached, so `applied` is rarely a promise. An `await` costs a microtask
      // even if there is no promise, so only promises are awaited.
      const appliedRules = applied instanceof Promise ? await applied : applied;
      if (appliedRules.length === 0) return NO_RULES;
      // The time of the functions in `custom`, and of waiting for rules with the mode `mark`, does
      // not shorten the deadlines of the decision and of the charge. Otherwise a client that makes a
      // function slow, or that sends a token with an unknown key, could leave its request undecided.
      const otherMs = (customCalls?.spentMs ?? 0) + waitedMs;
      const timeSpent = () => Math.max(0, Date.now() - startedAt - otherMs);
      const decision = await this.#limiter.decide(appliedRules, undefined, timeSpent());
      return { appliedRules, decision, tookMs: timeSpent() };
    } catch (error) {
      // The error may have occurred before the rules were matched, so any rule may apply.
      return { appliedRules: [], decision: toUndecided(error, rules), tookMs: 0 };
    }
  }
}
