import type {
  DescribedRequest,
  ExplainedRule,
  Explanation,
} from "../../src/explain/explanation.ts";
import { AdminError, EXIT } from "../admin/admin-error.ts";
import { type ConnectionOptions, connect } from "../admin/connection.ts";

/** The answer of a Worker. */
export interface LiveExplanation {
  /** In the form of this version. */
  readonly explanation: Explanation;
  /** The Worker is older than this form, so that most fields are missing or empty. */
  readonly isPartial: boolean;
  /** The answer as the Worker has sent it. */
  readonly answer: object;
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
  const call = (described: DescribedRequest) =>
    api.call<Explanation>("POST", "explain", "outcome", described);
  const notes: string[] = [];
  const answer = await call(request).catch((error) => {
    const { body, ...withoutBody } = request;
    const isRefused = error instanceof AdminError && [400, 413].includes(error.status ?? 0);
    if (body === undefined || !isRefused) throw error;
    // An older version knows no body, and the API reads 64 KiB of JSON, with all fields.
    notes.push(REFUSED_BODY);
    return call(withoutBody);
  });
  if (!Array.isArray(answer.rules) || !answer.rules.every(hasNumbers)) throw otherForm();
  if ("request" in answer && "response" in answer) {
    return { explanation: answer, isPartial: false, answer, notes };
  }
  const note = `${api.place} runs an older version of edge-weir, whose answer has no conditions, counters and stored keys. Deploy this version to see them, or leave out --against to explain the request with this folder's configuration.`;
  return {
    explanation: inThisForm(answer, request),
    isPartial: true,
    answer,
    notes: [...notes, note],
  };
}

const REFUSED_BODY =
  "The Worker has refused the body, because it is too long or the Worker is older. Functions in custom that read the body find none.";

/** Whether all counts and times of a rule in an answer are numbers. */
function hasNumbers(rule: Partial<ExplainedRule> | null): boolean {
  const { cost = 0, banMs = 0, quotas = [], counters = [] } = rule ?? {};
  if (!Array.isArray(quotas) || !Array.isArray(counters)) return false;
  const numbers = [
    cost,
    banMs,
    ...quotas.flatMap((each) => [each?.limit, each?.remaining, each?.resetMs]),
    ...counters.flatMap((each) => [
      ...[each?.limit, each?.capacity, each?.count, each?.cost, each?.windowStart, each?.windowEnd],
      ...[each?.countAfter ?? 0, each?.expiresAt ?? 0],
    ]),
  ];
  return numbers.every((each) => Number.isFinite(each));
}

/** Returns the error for an answer without a field that this version needs. */
export function otherForm(): AdminError {
  return new AdminError(
    EXIT.unavailable,
    "The answer has another form than expected. Compare the version of edge-weir in this project with that of the deployed Worker.",
  );
}

/** Adds empty fields to the answer of an older Worker, whose rules have only why, client and quotas. */
function inThisForm(answer: Partial<Explanation>, { method, url }: DescribedRequest): Explanation {
  const { hostname: host, pathname: path } = new URL(url);
  const sent = { method, sentMethod: method, isPreflight: false, host, path };
  return {
    outcome: answer.outcome ?? "undecided",
    request: { ...sent, variants: [path], isUnambiguous: true, client: "" },
    rules: (answer.rules ?? []).map((rule) => ({
      ...rule,
      mode: modeIn(rule.why),
      conditions: [],
      key: [],
    })),
    response: { headers: [] },
  };
}

/** The sentence of an older Worker names each mode except `enforce`. */
function modeIn(why: string): ExplainedRule["mode"] {
  const [, mode] = /mode: "(shadow|mark)"/.exec(why) ?? [];
  return (mode as "shadow" | "mark" | undefined) ?? "enforce";
}
