import { waitUntil } from "cloudflare:workers";
import { getPath } from "hono/utils/url";
import type { ResolvedBindings } from "../config/bindings.ts";
import type { CustomContext } from "../config/custom.ts";
import { hasConcurrent, type Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { ControlLink } from "../control/control-link.ts";
import { denialResponse } from "../http/custom-denial.ts";
import { createForward, type Forward, withItsMethod, withOriginHeaders } from "../http/forward.ts";
import { withQuotaHeaders, withServerTiming } from "../http/response-headers.ts";
import { badRequestResponse, pathTooLongResponse, undecidedResponse } from "../http/responses.ts";
import { waits } from "../limiter/counters.ts";
import {
  type Decision,
  knownQuotas,
  type Limited,
  mayBeCharged,
  type Quota,
  toUndecided,
} from "../limiter/decision.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { LiveOverrides } from "../overrides/live-overrides.ts";
import { namesPlace } from "../request/canonical-request.ts";
import type { ClientLimits } from "../request/client-limits.ts";
import { coloOf } from "../request/colo.ts";
import { createIdentify, type Identified, type Identify } from "../request/identify.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { writeUsage } from "../statistics/usage.ts";
import { ChargedForward, type ForwardWithQuotas } from "./charged-forward.ts";
import {
  logCustomKeyFailed,
  logCustomResponseFailed,
  logDecision,
  logUnreadableCost,
} from "./log.ts";
import { CHECK, checkedMatches, QuotaPage } from "./quota-page.ts";

/** The status that nginx logs for such a request. No client gets it. */
const CLIENT_CLOSED_REQUEST = 499;

const NO_QUOTAS: readonly Quota[] = [];

/** An app that answers admitted requests. `quotas`: see {@link ForwardWithQuotas}. */
type App = (request: Request, quotas: readonly Quota[]) => Promise<Response>;

interface DecidedRequest {
  readonly appliedRules: readonly AppliedRule[];
  /** Undefined if no rule applies to the request, or if its client is gone. */
  readonly decision?: Decision;
  /** The duration of the decision in milliseconds, not counting the functions in `custom`. */
  readonly tookMs: number;
  /** Set if the client has hung up before the decision. The request must not be forwarded. */
  readonly isGone?: true;
}

const NO_RULES: DecidedRequest = { appliedRules: [], tookMs: 0 };

/**
 * Handles a request from start to end: finds the matching rules, computes the keys, decides, and then forwards or
 * answers the request.
 *
 * An isolate creates one gateway for each handler. Between requests, a gateway keeps plain values only.
 */
export class Gateway {
  readonly #config: Config;
  readonly #control: ControlLink | undefined;
  readonly #usage: ResolvedBindings["usage"];
  readonly #limiter: Limiter;
  readonly #limits: ClientLimits;
  readonly #identify: Identify;
  readonly #overrides: LiveOverrides;
  readonly #forwardToOrigin: Forward;
  readonly #chargedForward: ChargedForward;
  /** Whether every configured origin is a server, instead of another Worker. */
  readonly #isOriginServer: boolean;
  /** Whether the deployment's mode lets every request pass, even a request that Weir cannot read. */
  readonly #neverDenies: boolean;
  readonly #quotaPage: QuotaPage | undefined;

  /** @param control undefined if the Worker has no control object */
  constructor(
    config: Config,
    bindings: ResolvedBindings,
    limiter: Limiter,
    limits: ClientLimits,
    control?: ControlLink,
  ) {
    const rules = config.rules.filter((rule) => rule.for !== "programs");
    this.#config = { ...config, rules };
    this.#control = control;
    this.#usage = bindings.usage;
    this.#limiter = limiter;
    this.#limits = limits;
    this.#overrides = control?.overrides ?? new LiveOverrides();
    this.#identify = createIdentify({
      config: this.#config,
      bindings,
      overrides: this.#overrides,
      background: waitUntil,
      onKeyFailure: logCustomKeyFailed,
      onUnreadableCost: logUnreadableCost,
      limits,
    });
    if (config.quotaPath !== undefined && bindings.mode !== "off") {
      this.#quotaPage = new QuotaPage(config.quotaPath, config, limiter);
    }
    this.#forwardToOrigin = createForward(bindings, config.forwarded);
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
   * @param app answers admitted requests instead of the configured origin
   * @param routedPath the path by which an app has routed the request; undefined if no app routes requests
   */
  handle(
    request: Request,
    context: CustomContext,
    app?: App,
    routedPath?: string,
  ): Promise<Response> {
    const keepAlive = () => waitUntil(handled.catch(() => {}));
    const handled = this.#handle(request, context, app, routedPath, keepAlive);
    return handled;
  }

  /** @param keepAlive see {@link Gateway.#decideRequest} */
  async #handle(
    request: Request,
    context: CustomContext,
    app: App | undefined,
    routedPath: string | undefined,
    keepAlive: () => void,
  ): Promise<Response> {
    const arrivedAt = Date.now();
    const loading = this.#control?.loadIfStale(arrivedAt);
    if (loading) await loading;
    if (this.#quotaPage?.isFor(request)) {
      return this.#quotaPage.answer(request, (described, counts) => {
        const routed = routedPath === undefined ? undefined : getPath(described);
        return this.#decideRequest(described, context, routed, arrivedAt, () => {}, counts);
      });
    }
    const decided = await this.#decideRequest(request, context, routedPath, arrivedAt, keepAlive);
    const decidedRequest = decided ?? (this.#neverDenies && NO_RULES);
    if (!decidedRequest) {
      this.#control?.recordRefused(Date.now());
      return namesPlace(request.url) ? pathTooLongResponse(request) : badRequestResponse(request);
    }
    if (decidedRequest.isGone) return new Response(null, { status: CLIENT_CLOSED_REQUEST });
    this.#observe(decidedRequest, request);
    const { signal } = request;
    return this.#answer(withItsMethod(request), context, app, decidedRequest, signal);
  }

  /**
   * Looks up the rules for a request and decides the request. Never rejects.
   *
   * A decision takes at most twice `timeoutMs` from the request's arrival: once to identify the client, and once for
   * the store (see docs/failure.md).
   *
   * @param arrivedAt when the request arrived, in milliseconds since the Unix epoch
   * @param keepAlive called before the request may take a slot or wait. It then runs to its end even if the client hangs
   * up, because otherwise nobody would give its slot or place back
   * @param counts if it is set, the request is only checked, by the rules for which this function returns true
   * @returns undefined if the request names no host and path, or if the path is too long
   */
  async #decideRequest(
    request: Request,
    context: CustomContext,
    routedPath: string | undefined,
    arrivedAt: number,
    keepAlive: () => void,
    counts?: (rule: Rule) => boolean,
  ): Promise<DecidedRequest | undefined> {
    const startedAt = Date.now();
    let identified: Identified<Limited> | undefined;
    try {
      // Both calls of the limiter must choose the same shard.
      const draw = Math.random();
      const options = {
        random: () => draw,
        ...(counts ? CHECK : { signal: request.signal, ahead: true }),
      };
      identified = await this.#identify<Limited>(request, {
        context,
        arrivedAt,
        routedPath,
        choose: counts && ((matches) => checkedMatches(matches, counts)),
        denialOf: (known) => this.#limiter.denialOf(known, options),
        isCovered: (known) => this.#limiter.isCovered(known, options),
      });
      if (!identified) return undefined;
      const { appliedRules, clients, denial, foreignMs } = identified;
      if (appliedRules.length === 0) return NO_RULES;
      const mayWait = appliedRules.some(({ rule }) => waits(rule));
      if (mayWait || appliedRules.some(({ rule }) => hasConcurrent(rule))) keepAlive();
      const timeSpent = () => Math.max(0, Date.now() - startedAt - foreignMs);
      if (denial) return { appliedRules, decision: denial, tookMs: timeSpent() };
      // A function in `custom.limits` and the fetch of an issuer's keys keep a request alive whose client has hung up.
      if (request.signal.aborted) return { appliedRules, tookMs: 0, isGone: true };
      const current = mayWait && {
        current: () => this.#overrides.clientsOf(clients.map((each) => this.#limits.current(each))),
      };
      const decideOptions = current ? { ...options, ...current } : options;
      const decision = await this.#limiter.decide(appliedRules, decideOptions, timeSpent());
      const tookMs = timeSpent() - (decision.waitedMs ?? 0);
      return { appliedRules, decision, tookMs };
    } catch (error) {
      // The error may have occurred before the rules were matched, so any rule may apply.
      return { appliedRules: [], decision: toUndecided(error, this.#config.rules), tookMs: 0 };
    } finally {
      identified?.close();
    }
  }

  async #answer(
    request: Request,
    context: CustomContext,
    app: App | undefined,
    { appliedRules, decision, tookMs }: DecidedRequest,
    signal: AbortSignal,
  ): Promise<Response> {
    const waitedMs = decision?.waitedMs;
    const forward: ForwardWithQuotas = async (admitted, quotas, use) => {
      const { tellsOrigin } = this.#config;
      const told = tellsOrigin ? withOriginHeaders(admitted, appliedRules, quotas) : admitted;
      const { response, isOwn } = app
        ? { response: await app(told, quotas), isOwn: false }
        : await this.#forwardToOrigin(told, use);
      return { response: withServerTiming(response, waitedMs), isOwn };
    };
    if (!decision) return (await forward(request, NO_QUOTAS)).response;
    switch (decision.outcome) {
      case "allowed": {
        const { quotas, ahead } = decision;
        if (!decision.slots && !decision.verdicts.some(mayBeCharged)) {
          const { response } = await forward(request, quotas);
          const { headers } = this.#config;
          const known = knownQuotas(decision);
          return withQuotaHeaders(request, response, known, headers, ahead?.policies());
        }
        const admitted = {
          request,
          context,
          decision,
          decidedInMs: tookMs,
          signal,
          isLengthExact: this.#isOriginServer && !app,
        };
        const response = this.#chargedForward.send(admitted, forward);
        // The origin has done the work, so the charge is made even if the client hangs up.
        waitUntil(response.catch(() => {}));
        return await response;
      }
      case "limited":
        return withServerTiming(
          await denialResponse(request, decision, context, this.#config, logCustomResponseFailed),
          waitedMs,
        );
      case "undecided":
        return decision.open
          ? (await forward(request, NO_QUOTAS)).response
          : withServerTiming(undecidedResponse(request), waitedMs);
      default:
        return decision satisfies never;
    }
  }

  /** Logs and counts a decision, except if the client has hung up while its request waited. */
  #observe({ appliedRules, decision }: DecidedRequest, request: Request): void {
    const isDenied = decision?.outcome === "limited";
    if (isDenied && decision.waitedMs !== undefined && request.signal.aborted) return;
    if (decision) logDecision(decision, this.#config.denialLog, request);
    this.#control?.record(appliedRules, decision, Date.now(), coloOf(request.cf));
    if (decision && this.#usage) writeUsage(this.#usage, appliedRules, decision, waitUntil);
  }
}
