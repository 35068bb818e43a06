import type { TokensOf } from "../config/custom-functions.ts";
import { readPieces } from "./text-body.ts";
import { MAX_TOKENS } from "./token-counts.ts";
import { createTokenCost, type TokenWeights } from "./token-weights.ts";

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

/**
 * The maximum length of a body that is parsed, in bytes. Longer bodies usually contain files, and
 * reading them would delay the request.
 */
export const MAX_REQUEST_LENGTH = 1024 * 1024;
/**
 * The assumed length of a token in bytes. A token of English has about four characters, and a
 * Chinese character has three bytes.
 */
const BYTES_PER_TOKEN = 4;
/** The fields of the APIs of OpenAI and Anthropic that limit the length of an answer. */
const LIMIT_FIELDS = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
/**
 * The highest number of answers to a prompt (`n`) in OpenAI's API. A higher number counts as this
 * one.
 */
const MAX_ANSWERS = 128;

/**
 * Returns a function for `custom.costs` that estimates the tokens of a request to a language model:
 * one token for every four bytes of the body, plus, for each answer (`n`), the request's
 * `max_tokens`, or `output` if the request has none. The function always returns a number, also for
 * bodies that are not JSON or that are longer than 1 MiB.
 *
 * The request is forwarded when its body has arrived, because the function needs the body. If the
 * body takes longer than `timeoutMs`, the `default` of the rule's cost applies.
 *
 * @throws TypeError if `output` is not a whole number, or a weight is not a number
 * @example custom: { costs: { estimate: llmReserve({ output: 2000 }) } }
 */
export function llmReserve(
  options: LlmReserveOptions = {},
): ((request: Request) => Promise<number>) & TokensOf<"request"> {
  const { output = 1000, weights } = options;
  if (!Number.isSafeInteger(output) || output < 0 || output > MAX_TOKENS) {
    throw new TypeError(`output: must be a whole number from 0 to ${MAX_TOKENS}`);
  }
  const costOf = createTokenCost(weights);
  // By the names of these functions, `weir check` finds them in a wrong place.
  return async function llmReserveCost(request: Request) {
    const { length, text } = await readBody(request);
    return costOf({
      input: Math.min(Math.ceil(length / BYTES_PER_TOKEN), MAX_TOKENS),
      output: Math.min(outputIn(text, output), MAX_TOKENS),
    });
  };
}

/** @returns the body's length and text; an empty text if the body is too long */
async function readBody(request: Request): Promise<{ length: number; text: string }> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > MAX_REQUEST_LENGTH || !request.body) return { length: declared, text: "" };
  // The runtime reads a whole body faster than this module reads it piece by piece.
  if (declared > 0) return { length: declared, text: await request.clone().text() };
  const pieces: string[] = [];
  let length = 0;
  await readPieces(request.clone().body as ReadableStream<Uint8Array>, (piece, bytes) => {
    length += bytes;
    pieces.push(piece);
    return length <= MAX_REQUEST_LENGTH;
  });
  return { length, text: length <= MAX_REQUEST_LENGTH ? pieces.join("") : "" };
}

/**
 * @param unlimited the tokens of one answer if the request does not limit them
 * @returns the maximum tokens of all answers
 */
function outputIn(json: string, unlimited: number): number {
  let body: unknown;
  try {
    body = JSON.parse(json);
  } catch {
    return unlimited;
  }
  if (typeof body !== "object" || body === null) return unlimited;
  const fields = body as Record<string, unknown>;
  const limits = LIMIT_FIELDS.map((name) => fields[name]).filter(isCount);
  const each = limits.length === 0 ? unlimited : Math.max(...limits);
  // The model writes `best_of` answers, and returns `n` of them.
  const answers = Math.max(1, ...[fields.n, fields.best_of].filter(isCount));
  return each * Math.min(answers, MAX_ANSWERS) * promptsIn(fields.prompt);
}

/** Returns the number of prompts: each text of a list is one, and so is each list of tokens. */
function promptsIn(prompt: unknown): number {
  return Array.isArray(prompt) && typeof prompt[0] !== "number" ? Math.max(1, prompt.length) : 1;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
