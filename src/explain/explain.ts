import type { CustomContext } from "../config/custom.ts";
import type { Config } from "../config/schema.ts";
import { denialResponse } from "../http/custom-denial.ts";
import { withOriginHeaders } from "../http/forward.ts";
import { withQuotaHeaders, withServerTiming } from "../http/response-headers.ts";
import { undecidedResponse } from "../http/responses.ts";
import { costBefore } from "../limiter/counters.ts";
import type { Decision, Quota } from "../limiter/decision.ts";
import { LiveOverrides } from "../overrides/live-overrides.ts";
import { type Override, overrideId } from "../overrides/override.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { clientAddress } from "../request/headers.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { type ExplainedClient, identifyClients } from "./client.ts";
import { readRequest } from "./described-request.ts";
import { type DryRun, dryRun } from "./dry-run.ts";
import type {
  DescribedRequest,
  ExplainContext,
  ExplainedRequest,
  ExplainedResponse,
  ExplainedRule,
  ExplainOverrides,
  Explanation,
} from "./explanation.ts";
import { type MatchedRule, matchRules } from "./matching.ts";

/**
 * Explains which rules apply to a described request, how it would be decided now, and what it would store.
 * Takes no quota and begins no ban. The functions in `custom` are called as for a real request.
 *
 * @throws {DescriptionError} if the description is no request that rules can match
 * @throws {StoreError} if the store fails and `context.decide` is undefined
 */
export async function explain(
  described: DescribedRequest,
  context: ExplainContext,
  overrides: ExplainOverrides = { live: new LiveOverrides(context.bindings.mode), byId: new Map() },
): Promise<Explanation> {
  const { config, bindings, custom } = context;
  const now = (context.now ?? Date.now)();
  const { request, canonical } = readRequest(described, config);
  const matched = matchRules(config, canonical, bindings.mode, overrides.live, now);
  const matches = matched.flatMap(({ match }) => match ?? []);
  const clients = await identifyClients(request, canonical, matches, context, overrides.live, now);
  const applied = [...clients.values()].flatMap((client) => client.applied ?? []);
  const run = applied.length > 0 ? await dryRun(applied, context, now) : undefined;
  const { decision, storeFailure } = run ?? {};
  return {
    outcome: decision?.outcome ?? "unmatched",
    request: explainedRequest(canonical, config.ipv6Prefix),
    rules: matched.map((each) => {
      const client = each.match && clients.get(each.match.rule);
      return explainedRule(each, client, run, overrides.byId);
    }),
    response: await explainedResponse(request, applied, decision, config, custom),
    ...(storeFailure !== undefined && { storeFailure }),
  };
}

function explainedRequest(canonical: CanonicalRequest, ipv6Prefix: number): ExplainedRequest {
  const { method, sentMethod, isPreflight, host, path, variants, isUnambiguous, headers } =
    canonical;
  const client = clientAddress(headers, ipv6Prefix);
  return { method, sentMethod, isPreflight, host, path, variants, isUnambiguous, client };
}

/**
 * Puts the explanation of a rule together.
 *
 * @param client undefined if the rule does not match
 * @param run undefined if no rule applies
 * @param overrides the overrides by their ids
 */
function explainedRule(
  { rule, active, conditions, why }: MatchedRule,
  client: ExplainedClient | undefined,
  run: DryRun | undefined,
  overrides: ReadonlyMap<string, Override>,
): ExplainedRule {
  const identity = client?.identity;
  const override =
    (identity === undefined
      ? undefined
      : overrides.get(overrideId({ rule: rule.name, client: identity }))) ??
    overrides.get(overrideId({ rule: rule.name }));
  const base: Omit<ExplainedRule, "applies" | "why"> = {
    rule: rule.name,
    mode: active?.mode ?? "off",
    conditions: [...conditions, ...(client?.conditions ?? [])],
    key: client?.key ?? [],
    ...(identity !== undefined && { client: identity }),
    ...(override && { override }),
  };
  const applied = client?.applied;
  if (!applied || !run) return { ...base, applies: false, why: why || whyNotApplied(client) };
  return {
    ...base,
    applies: true,
    why: whyApplied(applied),
    ...(client.tier !== undefined && { tier: client.tier }),
    cost: applied.cost ?? costBefore(applied.rule.cost),
    costSource: client.costSource,
    ...run.stateOf(applied),
  };
}

function whyNotApplied(client: ExplainedClient | undefined): string {
  if (client?.identity !== undefined) return "An override exempts the client.";
  const field = client?.conditions.at(-1)?.field ?? "exempt";
  return `The request fulfils exempt: ${field.slice("exempt.".length)}.`;
}

function whyApplied({ rule: { mode }, blockedUntil }: AppliedRule): string {
  const matches = mode === "enforce" ? "It matches." : `It matches, with mode: "${mode}".`;
  return blockedUntil === undefined ? matches : `${matches} An override blocks the client.`;
}

/** The maximum length of a body in an explanation, in characters. */
const MAX_BODY = 2000;

/**
 * Returns what a client and the origin would get. The functions that create real responses create it.
 *
 * @param decision undefined if no rule applies
 */
async function explainedResponse(
  request: Request,
  appliedRules: readonly AppliedRule[],
  decision: Decision | undefined,
  config: Config,
  custom: CustomContext,
): Promise<ExplainedResponse> {
  const own = decision && (await ownResponse(request, decision, config, custom));
  const quotas = decision?.outcome === "allowed" ? decision.quotas : [];
  const forwarded = withQuotaHeaders(request, new Response(), quotas, config.headers);
  const untimed = own ?? forwarded;
  const response =
    config.serverTiming && decision ? withServerTiming(request, untimed, decision, 0) : untimed;
  const headers = [...response.headers];
  if (!own) return { headers, ...originHeaders(request, appliedRules, quotas, config) };
  const body = (await response.text()).slice(0, MAX_BODY);
  return { status: response.status, headers, ...(body !== "" && { body }) };
}

/** Returns Weir's own response; undefined if the request is forwarded. */
async function ownResponse(
  request: Request,
  decision: Decision,
  config: Config,
  custom: CustomContext,
): Promise<Response | undefined> {
  switch (decision.outcome) {
    case "allowed":
      return undefined;
    case "limited":
      return denialResponse(request, decision, custom, config, () => {});
    case "undecided":
      return decision.open ? undefined : undecidedResponse(request);
    default:
      return decision satisfies never;
  }
}

function originHeaders(
  request: Request,
  appliedRules: readonly AppliedRule[],
  quotas: readonly Quota[],
  { tellsOrigin }: Config,
): Pick<ExplainedResponse, "originHeaders"> {
  if (!tellsOrigin) return {};
  const { headers } = withOriginHeaders(request, appliedRules, quotas);
  return { originHeaders: [...headers].filter(([name]) => name.startsWith("weir-")) };
}
