import { LiveOverrides } from "../overrides/live-overrides.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { clientAddress } from "../request/headers.ts";
import { DescriptionError, PATH_TOO_LONG, readRequest } from "./described-request.ts";
import type {
  DescribedRequest,
  ExplainContext,
  ExplainedRequest,
  ExplainOverrides,
  Explanation,
} from "./explanation.ts";
import { IdentifiedRequest } from "./identified-request.ts";
import { imagineDecision } from "./imagined-decision.ts";
import { matchRules } from "./matching.ts";
import { explainResponse } from "./response.ts";
import { explainedRule } from "./rules.ts";
import { explainUnread } from "./unread-request.ts";

/**
 * Explains which rules apply to a described request, how it would be decided now, and what it would store.
 * Takes no quota and begins no ban. The functions in `custom` are called as for a real request.
 *
 * @throws {DescriptionError} if the description is no request
 * @throws {StoreError} if the store fails and `context.decide` is undefined
 */
export async function explain(
  described: DescribedRequest,
  context: ExplainContext,
  overrides: ExplainOverrides = { live: new LiveOverrides(context.bindings.mode), byId: new Map() },
): Promise<Explanation> {
  const { config, bindings } = context;
  const now = (context.now ?? Date.now)();
  const { request, canonical } = readRequest(described, config);
  if (!canonical) {
    if (bindings.mode !== "enforce") return explainUnread(request, config, bindings.mode);
    throw new DescriptionError("url", `is answered with 414: its path ${PATH_TOO_LONG}.`);
  }
  const matched = matchRules(config, canonical, bindings.mode, overrides.live, now);
  const identified = new IdentifiedRequest(request, canonical, context, overrides.live, now);
  const clients = await identified.clientsOf(matched);
  const applied = [...clients.values()].flatMap((client) => client.applied ?? []);
  const imagined = applied.length > 0 ? await imagineDecision(applied, context, now) : undefined;
  const rules = matched.map((each) =>
    explainedRule(each, clients.get(each.rule), imagined, overrides.byId),
  );
  const { decision, storeFailure } = imagined ?? {};
  return {
    outcome: decision?.outcome ?? "unmatched",
    request: explainedRequest(canonical, config.ipv6Prefix),
    rules,
    response: await explainResponse(request, applied, decision, config, context.custom),
    ...(storeFailure !== undefined && { storeFailure }),
  };
}

function explainedRequest(canonical: CanonicalRequest, ipv6Prefix: number): ExplainedRequest {
  const { method, sentMethod, isPreflight, host, path, variants, isUnambiguous, headers } =
    canonical;
  const client = clientAddress(headers, ipv6Prefix);
  return { method, sentMethod, isPreflight, host, path, variants, isUnambiguous, client };
}
