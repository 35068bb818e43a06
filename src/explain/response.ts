import type { CustomContext } from "../config/custom.ts";
import type { Config } from "../config/schema.ts";
import { customDenial } from "../http/custom-denial.ts";
import { withOriginHeaders } from "../http/forward.ts";
import { withQuotaHeaders, withServerTiming } from "../http/response-headers.ts";
import { limitedResponse, undecidedResponse } from "../http/responses.ts";
import type { Decision, Limited, Quota } from "../limiter/decision.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { ExplainedResponse } from "./explanation.ts";

/** The maximum length of a body in an explanation, in characters. */
const MAX_BODY = 2000;

/**
 * Returns what a client and the origin would get. The functions that create real responses create it.
 *
 * @param decision undefined if no rule applies
 */
export async function explainResponse(
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
      return denial(request, decision, config, custom);
    case "undecided":
      return decision.open ? undefined : undecidedResponse(request);
    default:
      return decision satisfies never;
  }
}

function denial(
  request: Request,
  limited: Limited,
  { headers: style, custom: functions, timeoutMs }: Config,
  context: CustomContext,
): Response | Promise<Response> {
  const { response } = limited.rule;
  const name = response && "custom" in response ? response.custom : undefined;
  const create = name === undefined ? undefined : functions?.responses?.get(name);
  if (name === undefined || !create) return limitedResponse(request, limited, style);
  return customDenial(request, limited, context, { name, create, timeoutMs, style }, () => {});
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
