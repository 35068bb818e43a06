import type { PartialCost, TokensOf } from "../config/custom.ts";
import { EventStreamParser, ignoreRest, readPieces, tryParse } from "./body-text.ts";
import { createTokenCost, type TokenWeights, UsageTally } from "./token-counts.ts";

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

/** The maximum length of a JSON body, in bytes. The usage in a longer body is unknown. */
export const MAX_JSON_LENGTH = 4 * 1024 * 1024;

/**
 * Matches a `usage` object in JSON, and the end of Anthropic's streams. An event that does not match is not parsed:
 * most events have no usage or `"usage":null`, and parsing them would take long. The text of an answer cannot match,
 * because quotes inside a JSON string are escaped.
 */
const USAGE = /"usage"\s*:\s*\{|"message_stop"/;
/** Matches a part of an answer in the JSON of an event. */
const CONTENT = /"(?:content|text|reasoning\w*|arguments)"\s*:\s*"[^"]/;

/**
 * Returns a function for `custom.settle` that reads the number of used tokens from a language model's response. It
 * reads the JSON bodies and the event streams of APIs that are compatible with OpenAI's (chat completions, responses,
 * completions, embeddings) or with Anthropic's messages.
 *
 * - For an error response of the provider, the cost is 0, because providers do not bill failed requests. A 5xx
 *   response without the JSON of such an error has an unknown cost. It may come from a proxy, although the provider
 *   has processed the request.
 * - If a stream ends before its final usage and its last event, the cost is unknown, and the reserve stays charged.
 *   Otherwise a client could pay less by hanging up just before the end. The cost is also unknown if a count is
 *   invalid, such as -1 or "20". If the known counts cost more than the reserve, they are charged.
 *
 * @throws TypeError if a weight is not a number from 0 to 1000000
 * @example custom: { settle: { usage: llmUsage() } }
 */
export function llmUsage(
  options: LlmUsageOptions = {},
): ((response: Response) => Promise<number | PartialCost | undefined>) & TokensOf<"response"> {
  const costOf = createTokenCost(options.weights);
  return async function llmUsageCost(response: Response) {
    const { status } = response;
    const tally = new UsageTally();
    await readInto(tally, response);
    const counts = tally.counts();
    if (!counts) return isClientError(status) || tally.isError ? 0 : undefined;
    const cost = costOf(counts);
    return tally.isFinal ? cost : { atLeast: cost };
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
    const parser = new EventStreamParser((data) => addEvent(tally, data));
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
    if (length <= MAX_JSON_LENGTH) addBody(tally, text.join(""), response.status >= 500);
    return;
  }
  ignoreRest(body);
}

/**
 * Adds the data of one event of a stream: its usage, or the end of the stream. If an event has several lines and is
 * not JSON, each line counts as an event, because some servers write no blank lines.
 */
export function addEvent(tally: UsageTally, data: string): void {
  const isJoined = data.includes("\n") && tryParse(data) === undefined;
  for (const event of isJoined ? data.split("\n") : [data]) {
    if (USAGE.test(event)) tally.add(tryParse(event));
    else if (event.length < 20 && event.trim() === "[DONE]") tally.end();
    else if (tally.hasAnswer && CONTENT.test(event)) tally.resume();
  }
}

/** @param isFailure whether the text may be the body of an error response */
function addBody(tally: UsageTally, json: string, isFailure: boolean): void {
  if (!isFailure && !USAGE.test(json)) return;
  const message = tryParse(json);
  tally.add(message, true);
  if (isFailure) tally.addError(message);
}
