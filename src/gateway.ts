import type { Config } from "./config/schema.ts";
import type { Settings } from "./config/settings.ts";
import { appendQuotaFields } from "./http/fields.ts";
import { createForward } from "./http/forward.ts";
import { limitedResponse, undecidedResponse } from "./http/responses.ts";
import type { Decision, Quota } from "./limiter/decision.ts";
import { createLimiter, type Subject, undecided } from "./limiter/limiter.ts";
import { reportShadow, reportUndecided } from "./report.ts";
import { canonicalRequest } from "./request/canonical-request.ts";
import { identityOf } from "./request/identity.ts";
import { createMatcher, type Match } from "./request/matcher.ts";
import { createStore } from "./stores/create-store.ts";

export type Gateway = (request: Request) => Promise<Response>;

/**
 * The whole path of a request: match → key → decide → forward or answer.
 *
 * Made once for an isolate. What it keeps between requests are plain values.
 */
export function createGateway(config: Config, settings: Settings): Gateway {
  const matchRules = createMatcher(config.rules, config.caseSensitivePaths);
  const decide = createLimiter(config, createStore(settings.store, config));
  const forward = createForward(settings.origin);

  /** Undefined when no rule is about the request. */
  async function decideOn(request: Request): Promise<Decision | undefined> {
    const canonical = canonicalRequest(request, config.caseSensitivePaths);
    const matches = matchRules(canonical);
    if (matches.length === 0) return undefined;
    const toSubject = async ({ rule, params }: Match): Promise<Subject> => {
      return { rule, identity: await identityOf(rule.key, canonical, params, config.ipv6Prefix) };
    };
    return decide(await Promise.all(matches.map(toSubject)));
  }

  return async function handle(request) {
    // What cannot even be matched might fall under any rule.
    const decision = await decideOn(request).catch((error) => undecided(error, config.rules));
    switch (decision?.outcome) {
      case undefined:
        return forward(request);
      case "allowed":
        reportShadow(decision.shadow);
        return withQuotas(await forward(request), decision.quotas, config);
      case "limited":
        reportShadow(decision.shadow);
        return limitedResponse(request, decision, config.headers);
      case "undecided":
        reportUndecided(decision);
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
