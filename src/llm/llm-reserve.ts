import type { TokensOf } from "../config/custom.ts";
import { foldNames, isObject, parseObject, readPieces, withoutTokens } from "./body-text.ts";
import { createTokenCost, MAX_TOKENS, type TokenWeights } from "./token-counts.ts";

/** The options of {@link llmReserve}. */
export interface LlmReserveOptions {
  /**
   * The expected tokens of one answer, for requests without `max_tokens`. A request for several
   * answers (`n`) reserves this number for each of them.
   *
   * @default 1000
   */
  readonly output?: number | undefined;
  /**
   * The cost of one token of the prompt and of the answer, as in the options of `llmUsage`.
   *
   * @default each token costs 1
   */
  readonly weights?: TokenWeights | undefined;
}

/** The maximum length of a body that is read, in bytes. Longer bodies usually contain files. */
export const MAX_REQUEST_LENGTH = 1024 * 1024;
/**
 * A body without a stated length may have this number of pieces, and one more for each `MIN_PIECE_LENGTH` bytes.
 * Reading a piece takes about 50 µs, even for a single byte.
 */
const MAX_PIECES = 128;
const MIN_PIECE_LENGTH = 512;
/**
 * The assumed length of a token in bytes. A token of English text has about four characters. A Chinese character has
 * three bytes.
 */
const BYTES_PER_TOKEN = 4;
/** The fields of the APIs of OpenAI and Anthropic that limit the length of an answer. */
const LIMIT_FIELDS = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/**
 * Returns a function for `custom.costs` that estimates the tokens of a request to a language model. It counts one
 * token for every four bytes of the body, and one for each number in a list of whole numbers. For each answer (`n`), it
 * adds the request's `max_tokens`, or `output` if the request has none.
 *
 * If the tokens are unknown, the function returns the cost of {@link MAX_TOKENS}, so that an odd request never
 * reserves less. The `max` of the rule's cost bounds this number. The tokens are unknown if `max_tokens` or `n` is
 * not a positive whole number, if two fields have the same name, or if the body is encoded, is longer than 1 MiB, finds
 * no room in the isolate, or is not a JSON object. {@link parseObject} has further bounds.
 *
 * The request is forwarded only after its body has arrived. If this takes longer than `timeoutMs`, the `max` of the
 * rule's cost is reserved, else its `default`, but at least 1.
 *
 * @throws TypeError if `output` is not a whole number, or a weight is not a number
 * @example custom: { costs: { estimate: llmReserve({ output: 2000 }) } }
 */
export function llmReserve(
  options: LlmReserveOptions = {},
): ((request: Request) => Promise<number>) & TokensOf<"request"> & { readonly atLeast: number } {
  const { output = 1000, weights } = options;
  if (!Number.isSafeInteger(output) || output < 0 || output > MAX_TOKENS) {
    throw new TypeError(`output: must be a whole number from 0 to ${MAX_TOKENS}`);
  }
  const costOf = createTokenCost(weights);
  // If answers are free, a prompt counts as at least one token, so that `atLeast` is more than 0.
  const leastInput = costOf({ output: Math.min(output, 1) }) === 0 ? 1 : 0;
  async function llmReserveCost(request: Request) {
    const body = await readBody(request);
    if (!body) return costOf({ input: MAX_TOKENS, output: MAX_TOKENS });
    const { rest, tokens } = withoutTokens(body.text);
    // Each removed character has one byte.
    const bytes = body.length - (body.text.length - rest.length);
    return costOf({
      input: Math.max(leastInput, tokens + Math.ceil(bytes / BYTES_PER_TOKEN)),
      output: Math.min(outputIn(rest, output), MAX_TOKENS),
    });
  }

  // A client without quota for this cost is denied before its body is read.
  return Object.assign(llmReserveCost, {
    atLeast: costOf({ input: leastInput, output: Math.min(output, 1) }),
  });
}

/**
 * Whether a server that decodes bodies by their charset may read a different text than with UTF-8. For example,
 * `max+AF8-tokens` is `max_tokens` in UTF-7.
 */
function hasOtherCharset(contentType: string): boolean {
  if (!/charset/i.test(contentType)) return false;
  return !/^(?:(?!charset)[^,])*;\s*charset\s*=\s*"?(utf-?8|us-ascii)"?\s*(;(?:(?!charset)[^,])*)?$/i.test(
    contentType,
  );
}

interface BodyText {
  readonly text: string;
  /** In bytes. */
  readonly length: number;
}

/** @returns undefined if the body is encoded, not UTF-8 or too long, or if reading it fails */
async function readBody(request: Request): Promise<BodyText | undefined> {
  const { headers, body } = request;
  if (!body) return { text: "", length: 0 };
  // Decoded, an encoded body can be a thousand times as long.
  if (!/^\s*(identity\s*)?$/i.test(headers.get("content-encoding") ?? "")) return undefined;
  if (hasOtherCharset(headers.get("content-type") ?? "")) return undefined;
  const declared = Number(headers.get("content-length") ?? 0);
  if (declared > MAX_REQUEST_LENGTH) return undefined;
  const copy = request.clone();
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  if (declared > 0) {
    // The runtime reads a whole body faster than this module reads its pieces.
    try {
      const bytes = await copy.arrayBuffer();
      return { text: decoder.decode(bytes), length: bytes.byteLength };
    } catch {
      return undefined;
    }
  }
  let text = "";
  let length = 0;
  let pieces = 0;
  const isAccepted = () =>
    length <= MAX_REQUEST_LENGTH && pieces <= MAX_PIECES + length / MIN_PIECE_LENGTH;
  const addPiece = (piece: string, bytes: number) => {
    text += piece;
    length += bytes;
    if (bytes > 0) pieces++;
    return isAccepted();
  };
  const isWhole = await readPieces(copy.body as ReadableStream<Uint8Array>, addPiece, decoder);
  return isWhole && isAccepted() ? { text, length } : undefined;
}

/**
 * @param text the body without its lists of tokens
 * @param unlimited the tokens of one answer if the request does not limit them
 * @returns the maximum tokens of all answers; Infinity if they are unknown
 */
function outputIn(text: string, unlimited: number): number {
  if (text === "") return unlimited;
  const body = parseObject(text);
  const fields = body && foldNames(body);
  const thinking = fields?.get("thinking");
  const thoughtFields = foldNames(isObject(thinking) ? thinking : {});
  if (!fields || !thoughtFields) return Number.POSITIVE_INFINITY;
  const limits = LIMIT_FIELDS.map((name) => countIn(fields.get(name), 0));
  // Anthropic counts thinking tokens as part of the answer. `budget_tokens` may be greater than `max_tokens`.
  const thoughts = countIn(thoughtFields.get("budget_tokens"), 0);
  const each = Math.max(Math.max(...limits) || unlimited, thoughts);
  // The model writes `best_of` answers, and returns `n` of them.
  const answers = Math.max(countIn(fields.get("n"), 1), countIn(fields.get("best_of"), 1));
  // If `output` is 0, `each` can be 0 while `answers` is infinite, and their product would be NaN.
  if (answers === Number.POSITIVE_INFINITY) return answers;
  return each * answers * promptsIn(fields.get("prompt"));
}

/** @returns `absent` for null and undefined; Infinity for any other value that is not a count */
function countIn(value: unknown, absent: number): number {
  if (value === undefined || value === null) return absent;
  const isCount = Number.isSafeInteger(value) && (value as number) > 0;
  return isCount ? (value as number) : Number.POSITIVE_INFINITY;
}

/** Returns the number of prompts: each text, or each list of tokens, in a list is one prompt. */
function promptsIn(prompt: unknown): number {
  if (!Array.isArray(prompt)) return 1;
  return prompt.every((each) => typeof each === "number") ? 1 : prompt.length;
}
