import type { DescribedRequest, Explanation } from "../../src/explain/explanation.ts";
import { type ConnectionOptions, connect } from "../admin/connection.ts";

/** The answer of a Worker, in the form of this version. */
export interface LiveExplanation {
  readonly explanation: Explanation;
  readonly notes: readonly string[];
}

/**
 * Lets a Worker explain a request, with its counters and overrides. Takes no quota.
 *
 * @throws {AdminError} if the Worker cannot be called, or refuses the request
 */
export async function explainLive(
  request: DescribedRequest,
  connection: Omit<ConnectionOptions, "atOption">,
): Promise<LiveExplanation> {
  const api = await connect({ ...connection, atOption: "--against" });
  const answer = await api.call<Explanation>("POST", "explain", "outcome", request);
  if ("request" in answer && "response" in answer) return { explanation: answer, notes: [] };
  return { explanation: inThisForm(answer, request), notes: [olderWorker(api.place)] };
}

function olderWorker(place: string): string {
  return `${place} runs an older version of edge-weir, whose answer has no conditions, counters or stored keys. Deploy this version to see them, or leave out --against to explain the request with this folder's configuration.`;
}

/** Adds empty fields to the answer of a version before 0.2, which has only some fields of the rules. */
function inThisForm(answer: Partial<Explanation>, { method, url }: DescribedRequest): Explanation {
  const { hostname, pathname } = new URL(url);
  const sentMethod = method.toUpperCase();
  return {
    outcome: answer.outcome ?? "undecided",
    request: {
      method: sentMethod,
      sentMethod,
      isPreflight: false,
      host: hostname,
      path: pathname,
      variants: [pathname],
      isUnambiguous: true,
      client: "not in the answer",
    },
    rules: (answer.rules ?? []).map((rule) => ({
      ...rule,
      mode: rule.mode ?? "enforce",
      conditions: rule.conditions ?? [],
      key: rule.key ?? [],
    })),
    response: { headers: [] },
  };
}
