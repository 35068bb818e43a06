import { type DeploymentMode, rulesInMode } from "../config/bindings.ts";
import type { Config } from "../config/schema.ts";
import { hostOf } from "../request/canonical-request.ts";
import { clientAddress } from "../request/headers.ts";
import { PATH_TOO_LONG } from "./described-request.ts";
import type { Explanation } from "./explanation.ts";

/**
 * Explains a request whose path is too long to be matched. A Worker that enforces limits answers it with 414; in
 * other modes, the Worker forwards it, and no rule counts it.
 */
export function explainUnread(
  { method, url, headers }: Request,
  { rules, ipv6Prefix }: Config,
  mode: DeploymentMode,
): Explanation {
  const { pathname: path } = new URL(url);
  const why = `No rule can match the path: it ${PATH_TOO_LONG}. With WEIR_MODE: "enforce", Weir answers 414.`;
  return {
    outcome: "unmatched",
    request: {
      method: method === "HEAD" ? "GET" : method,
      sentMethod: method,
      isPreflight: false,
      host: hostOf(url),
      path,
      variants: [path],
      isUnambiguous: false,
      client: clientAddress(headers, ipv6Prefix),
    },
    rules: rules.map((rule) => ({
      rule: rule.name,
      applies: false,
      why,
      mode: rulesInMode([rule], mode)[0]?.mode ?? "off",
      conditions: [],
      key: [],
    })),
    response: { headers: [] },
  };
}
