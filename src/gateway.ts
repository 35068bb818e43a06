import { waitUntil } from "cloudflare:workers";
import type { ResolvedBindings } from "./config/bindings.ts";
import type { Config } from "./config/schema.ts";
import { createForward, type Forward } from "./http/forward.ts";
import { appendQuotaFields } from "./http/rate-limit-headers.ts";
import {
  badRequestResponse,
  limitedResponse,
  pathTooLongResponse,
  undecidedResponse,
} from "./http/responses.ts";
import { chargesLater } from "./limiter/counters.ts";
import type { Allowed, Decision, Quota } from "./limiter/decision.ts";
import { createLimiter, undecided } from "./limiter/limiter.ts";
import { COUNTED_LOCALLY, logBreaker, logShadow, logUndecided } from "./log.ts";
import { type AppliedRule, createIdentifier } from "./request/applied-rule.ts";
import { canonicalRequest, namesPlace } from "./request/canonical-request.ts";
import type { CustomKeys } from "./request/custom-key.ts";
import { createMatcher } from "./request/matcher.ts";
import { createStore } from "./stores/create-store.ts";

/**
 * Answers a request: with the origin's response, or with one of its own.
 *
 * @param forward how to get the origin's response, where it is not the configured origin's
 * @param routedPath the path that an app has routed the request by, if one has
 */
export type Gateway = (
  request: Request,
  forward?: Forward,
  routedPath?: string,
) => Promise<Response>;

interface Decided {
  readonly subjects: AppliedRule[];
  /** None where no rule applies to the request. */
  readonly decision?: Decision;
  /** What the decision took, in milliseconds: the response waits for a charge only for what is left. */
  readonly tookMs: number;
}

/**
 * The whole path of a request: match → key → decide → forward or answer.
 *
 * Made once for an isolate. What it keeps between requests are plain values.
 *
 * @param keys what `custom:NAME` keys are
 */
export function createGateway(
  config: Config,
  settings: ResolvedBindings,
  keys: CustomKeys = {},
): Gateway {
  const matchRules = createMatcher(config.rules, config.caseSensitivePaths);
  const identify = createIdentifier(config, settings, keys);
  const limiter = createLimiter(
    config,
    createStore(settings.store, { ...config, onBreaker: logBreaker }),
    settings.nativeLimiter,
  );
  const forwardToOrigin = createForward(settings.origin);

  /**
   * Without a decision no rule matches the request; without a result it does not say which host and
   * path it is for. Never rejects.
   */
  async function decideOn(request: Request, routedPath?: string): Promise<Decided | undefined> {
    const startedAt = Date.now();
    try {
      const canonical = canonicalRequest(request, config.caseSensitivePaths, routedPath);
      if (!canonical) return undefined;
      const matches = matchRules(canonical);
      const found = matches.length === 0 ? [] : identify(canonical, request, matches);
      // Most clients are known at once, and an await costs a turn of the queue even then.
      const subjects = found instanceof Promise ? await found : found;
      if (subjects.length === 0) return { subjects, tookMs: 0 };
      const identifiedAt = Date.now();
      const decision = await limiter.decide(subjects, undefined, identifiedAt - startedAt);
      return { subjects, decision, tookMs: Date.now() - startedAt };
    } catch (error) {
      // What cannot even be matched might fall under any rule.
      return { subjects: [], decision: undecided(error, config.rules), tookMs: 0 };
    }
  }

  /** What is left when a response has told what it cost. The response is there: no failure is its. */
  async function settle(
    subjects: AppliedRule[],
    { quotas, local }: Allowed,
    response: Response,
    decidedInMs: number,
  ) {
    const settled = limiter
      .settle(subjects, response, local !== undefined)
      .catch((error): Quota[] => {
        logUndecided(undecided(error, []));
        return [];
      });
    // The charge has the whole of the store's deadline, however long the decision took; the response
    // waits only for as long as is left of one.
    waitUntil(settled);
    const { promise: late, resolve } = Promise.withResolvers<Quota[]>();
    const timer = setTimeout(() => resolve([]), Math.max(0, config.timeoutMs - decidedInMs));
    const charged = await Promise.race([settled, late]);
    clearTimeout(timer);
    return quotas.map((quota) => charged.find(({ policy }) => policy === quota.policy) ?? quota);
  }

  /** To the origin, whose response tells what the request cost, and charges that. */
  async function forwardAndSettle(
    request: Request,
    forward: Forward,
    subjects: AppliedRule[],
    decision: Allowed,
    decidedInMs: number,
  ): Promise<Response> {
    const response = await forward(request);
    const quotas = await settle(subjects, decision, response, decidedInMs);
    return withQuotas(response, quotas, config);
  }

  return async function handle(request, forward = forwardToOrigin, routedPath) {
    const decided = await decideOn(request, routedPath);
    if (!decided) {
      return namesPlace(request.url) ? pathTooLongResponse(request) : badRequestResponse(request);
    }
    const { subjects, decision, tookMs } = decided;
    switch (decision?.outcome) {
      case undefined:
        return forward(request);
      case "allowed": {
        logShadow(decision.shadow);
        if (decision.local) logUndecided(decision.local, COUNTED_LOCALLY);
        if (!subjects.some(({ rule }) => chargesLater(rule))) {
          return withQuotas(await forward(request), decision.quotas, config);
        }
        const answer = forwardAndSettle(request, forward, subjects, decision, tookMs);
        // A client that hangs up before the answer must not get the origin's work for nothing.
        waitUntil(answer.catch(() => {}));
        return await answer;
      }
      case "limited":
        logShadow(decision.shadow);
        if (decision.local) logUndecided(decision.local, COUNTED_LOCALLY);
        return limitedResponse(request, decision, config.headers);
      case "undecided":
        logUndecided(decision);
        return decision.open ? forward(request) : undecidedResponse(request);
      default:
        return decision satisfies never;
    }
  };
}

/** The origin's response with the quotas added; itself where there is nothing to add. */
function withQuotas(response: Response, quotas: readonly Quota[], config: Config): Response {
  if (quotas.length === 0 || config.headers === "none") return response;
  // An origin may use any status of three digits, but a Response cannot be made with all of them.
  if (response.status > 599) return response;
  // Headers of a fetched response cannot be changed; a copy's can, and its body is the same stream.
  const copy = new Response(response.body, response);
  appendQuotaFields(copy.headers, quotas, config.headers);
  return copy;
}
