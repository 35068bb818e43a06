import type { TokensOf } from "../config/custom-functions.ts";
import { createEventStreamParser } from "./event-stream.ts";
import { ignoreRest, readPieces } from "./text-body.ts";
import { createUsageTally, type UsageTally } from "./token-counts.ts";
import { createTokenCost, type TokenWeights } from "./token-weights.ts";

/** The options of {@link llmUsage}. */
export interface LlmUsageOptions {
  /**
   * The cost of one token of each kind, for budgets of money instead of tokens.
   *
   * @default each token costs 1
   * @example { input: 1, output: 5, cacheRead: 0.1 }
   */
  readonly weights?: TokenWeights | undefined;
}

/** The fields of a settle function's second argument that {@link llmUsage} uses. */
export interface LlmUsageContext {
  readonly request?: Request | undefined;
  /** The cost that Weir has charged before the response. */
  readonly reserved?: number | undefined;
}

/**
 * The maximum length of a JSON body, in bytes. The usage in a longer body is unknown,
 * because the memory of an isolate is limited.
 */
export const MAX_JSON_LENGTH = 4 * 1024 * 1024;

/**
 * Matches a `usage` object in JSON. In streams, most events have no usage or `"usage":null`, and
 * parsing all of them would take most of the time. Inside a JSON string, the quotes are escaped, so
 * the text of an answer cannot match.
 */
const USAGE = /"usage"\s*:\s*\{/;

/**
 * Returns a function for `custom.settle` that reads the number of used tokens from a language
 * model's response. It reads the JSON bodies and the event streams of APIs that are compatible with
 * OpenAI's (chat completions, responses, completions, embeddings) or with Anthropic's messages.
 *
 * - For an error response of the provider, the cost is 0, because providers do not bill failed
 *   requests. The cost of a 5xx response is unknown if its body is not the JSON of such an error.
 *   Such a response may come from a proxy, although the provider has processed the request.
 * - If a stream ends before the provider has sent the final usage, the cost is unknown, and the
 *   reserve stays charged. Otherwise a client could pay less by hanging up just before the end. If
 *   the known input alone costs more than the reserve, the cost is that of the input.
 *
 * @throws TypeError if a weight is not a number from 0 to 1000000
 * @example custom: { settle: { usage: llmUsage() } }
 */
export function llmUsage(
  options: LlmUsageOptions = {},
): ((response: Response, context?: LlmUsageContext) => Promise<number | undefined>) &
  TokensOf<"response"> {
  const costOf = createTokenCost(options.weights);
  return async function llmUsageCost(response: Response, context?: LlmUsageContext) {
    const { status } = response;
    const tally = createUsageTally();
    await readInto(tally, response);
    const counts = tally.counts();
    if (!counts) return isClientError(status) || tally.isError() ? 0 : undefined;
    const cost = costOf(counts);
    if (tally.isComplete()) return cost;
    return cost > (context?.reserved ?? Number.POSITIVE_INFINITY) ? cost : undefined;
  };
}

/** Whether the provider has refused the request, so that the model did not run. */
function isClientError(status: number): boolean {
  return status >= 400 && status < 500;
}

async function readInto(tally: UsageTally, response: Response): Promise<void> {
  const { body } = response;
  const type = response.headers.get("content-type") ?? "";
  if (!body) return;
  if (/^\s*text\/event-stream\s*(;|$)/i.test(type)) {
    const parser = createEventStreamParser((data) => addJson(tally, data));
    await readPieces(body, (text) => {
      parser.push(text);
      return true;
    });
    parser.end();
    return;
  }
  if (/^\s*application\/(json|[\w.-]+\+json)\s*(;|$)/i.test(type)) {
    const text: string[] = [];
    let length = 0;
    await readPieces(body, (piece, bytes) => {
      length += bytes;
      if (length <= MAX_JSON_LENGTH) text.push(piece);
      return length <= MAX_JSON_LENGTH;
    });
    if (length <= MAX_JSON_LENGTH) addJson(tally, text.join(""), response.status >= 500);
    return;
  }
  ignoreRest(body);
}

/**
 * Adds the usage in a JSON text, if there is any.
 *
 * @param isFailure whether the text may be the body of an error response
 */
export function addJson(tally: UsageTally, json: string, isFailure = false): void {
  if (!isFailure && !USAGE.test(json)) return;
  try {
    const message: unknown = JSON.parse(json);
    tally.add(message);
    if (isFailure) tally.addError(message);
  } catch {
    // The text is not JSON: the stream has broken off, or the event has another format, such as
    // [DONE].
  }
}
