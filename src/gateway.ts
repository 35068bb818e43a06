import { waitUntil } from "cloudflare:workers";
import { ChargedForward, type ForwardWithQuotas } from "./charged-forward.ts";
import type { ResolvedBindings } from "./config/bindings.ts";
import type { CustomContext } from "./config/custom.ts";
import type { Config } from "./config/schema.ts";
import type { ControlLink } from "./control/control-link.ts";
import { customDenial } from "./http/custom-denial.ts";
import { createForward, withItsMethod, withOriginFields } from "./http/forward.ts";
import { withQuotaFields, withServerTiming } from "./http/response-headers.ts";
import {
  badRequestResponse,
  limitedResponse,
  pathTooLongResponse,
  undecidedResponse,
} from "./http/responses.ts";
import { type Limited, mayBeCharged, type Quota } from "./limiter/decision.ts";
import type { Limiter } from "./limiter/limiter.ts";
import { logCustomResponseFailed, logDecision } from "./log.ts";
import { namesPlace } from "./request/canonical-request.ts";
import { type DecidedRequest, NO_RULES, RequestDecider } from "./request-decider.ts";
import { inSpan, isTraced } from "./stores/calls.ts";

const NO_QUOTAS: readonly Quota[] = [];

/**
 * Handles a request from start to end. It finds the matching rules, computes the keys, decides, and
 * then forwards or answers the request.
 *
 * An isolate creates one gateway per handler. Between requests, a gateway keeps plain values only.
 */
export class Gateway {
  readonly #config: Config;
  readonly #control: ControlLink | undefined;
  readonly #decider: RequestDecider;
  readonly #forwardToOrigin: ForwardWithQuotas;
  readonly #chargedForward: ChargedForward;
  /** Whether every configured origin is a server, and not another Worker. */
  readonly #isOriginServer: boolean;
  /**
   * Whether the deployment's mode lets every request pass, even a request that Weir cannot read.
   */
  readonly #neverDenies: boolean;

  /** @param control undefined if the Worker has no control object */
  constructor(config: Config, bindings: ResolvedBindings, limiter: Limiter, control?: ControlLink) {
    const rules = config.rules.filter((rule) => rule.for !== "programs");
    this.#config = { ...config, rules };
    this.#control = control;
    this.#decider = new RequestDecider(this.#config, bindings, limiter, control?.overrides);
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
    const arrivedAt = Date.now();
    const loading = this.#control?.loadIfStale(arrivedAt, request);
    if (loading) await loading;
    const decide = () => this.#decider.decide(request, context, routedPath, arrivedAt);
    const decided = await (isTraced() ? inSpan("weir.decision", decide, attributesOf) : decide());
    const decidedRequest = decided ?? (this.#neverDenies && NO_RULES);
    if (!decidedRequest) {
      this.#control?.recordRefused(Date.now());
      return namesPlace(request.url) ? pathTooLongResponse(request) : badRequestResponse(request);
    }
    this.#observe(decidedRequest, request);
    const response = await this.#answer(withItsMethod(request), context, send, decidedRequest);
    const { decision, tookMs } = decidedRequest;
    if (!this.#config.serverTiming || !decision) return response;
    return withServerTiming(request, response, decision, tookMs);
  }

  /** Forwards a request, or answers it, as it was decided. */
  async #answer(
    request: Request,
    context: CustomContext,
    send: ForwardWithQuotas,
    { appliedRules, decision, tookMs }: DecidedRequest,
  ): Promise<Response> {
    const forward: ForwardWithQuotas = this.#config.tellsOrigin
      ? (admitted, quotas, isRaw) =>
          send(withOriginFields(admitted, appliedRules, quotas), quotas, isRaw)
      : send;
    if (!decision) return forward(request, NO_QUOTAS);
    switch (decision.outcome) {
      case "allowed": {
        const { quotas } = decision;
        if (!decision.verdicts.some(mayBeCharged)) {
          const response = await forward(request, quotas);
          return withQuotaFields(request, response, quotas, this.#config.headers);
        }
        const admitted = {
          request,
          context,
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

  /** Logs and counts a decision. */
  #observe({ appliedRules, decision }: DecidedRequest, request: Request): void {
    if (decision) logDecision(decision, this.#config.denialLog, request);
    this.#control?.record(appliedRules, decision, Date.now());
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
}

/** Returns the attributes of a decision's span, which contain no value of the client. */
function attributesOf(decided: DecidedRequest | undefined) {
  const { decision, appliedRules } = decided ?? NO_RULES;
  return {
    "weir.outcome": decided ? (decision?.outcome ?? "unmatched") : "refused",
    "weir.rules": appliedRules.length,
  };
}
