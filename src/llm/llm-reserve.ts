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
 * Returns a function for `custom.costs` that estimates the tokens of a request to a language model:
 * one token for every four bytes of the body, plus, for each answer (`n`), the request's
 * `max_tokens`, or `output` if the request has none.
 *
 * If the tokens are unknown, the function returns the cost of {@link MAX_TOKENS}, so that no request
 * reserves less because it is odd. The `max` of the rule's cost bounds this number. The tokens are
 * unknown if `max_tokens` or `n` is not a positive whole number, or if the body is encoded, is longer
 * than 1 MiB, or is not a JSON object.
 *
 * The request is forwarded when its body has arrived, because the function needs the body. If the
 * body takes longer than `timeoutMs`, the `default` of the rule's cost applies.
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
  // By the names of these functions, `weir check` finds them in a wrong place.
  async function llmReserveCost(request: Request) {
    const body = await readBody(request);
    const prompt = Math.ceil(body.length / BYTES_PER_TOKEN);
    return costOf({
      input: Math.min(prompt, MAX_TOKENS),
      output: Math.min(outputIn(body.text, output), MAX_TOKENS),
    });
  }

  // A client without quota for this cost is denied before its body is read.
  return Object.assign(llmReserveCost, { atLeast: costOf({ output: Math.min(output, 1) }) });
}

/** A body of unknown length. Its text is not JSON. */
const UNKNOWN = { length: Number.POSITIVE_INFINITY, text: "-" };

/** Returns the body's length in bytes, and its text. */
async function readBody(request: Request): Promise<{ length: number; text: string }> {
  const { headers, body } = request;
  if (!body) return { length: 0, text: "{}" };
  // The text of an encoded body can be a thousand times as long as the body.
  if (!/^\s*(identity\s*)?$/i.test(headers.get("content-encoding") ?? "")) return UNKNOWN;
  const declared = Number(headers.get("content-length") ?? 0);
  if (declared > MAX_REQUEST_LENGTH) return UNKNOWN;
  // The runtime reads a whole body faster than this module reads it piece by piece.
  if (declared > 0) return { length: declared, text: await request.clone().text() };
  const pieces: string[] = [];
  let length = 0;
  await readPieces(request.clone().body as ReadableStream<Uint8Array>, (piece, bytes) => {
    length += bytes;
    pieces.push(piece);
    return length <= MAX_REQUEST_LENGTH;
  });
  if (length > MAX_REQUEST_LENGTH) return UNKNOWN;
  return { length, text: length === 0 ? "{}" : pieces.join("") };
}

/**
 * @param unlimited the tokens of one answer if the request does not limit them
 * @returns the maximum tokens of all answers; Infinity if they are unknown
 */
function outputIn(json: string, unlimited: number): number {
  const fields = fieldsIn(json);
  if (!fields) return Number.POSITIVE_INFINITY;
  const limits = LIMIT_FIELDS.map((name) => countIn(fields.get(name), 0));
  // Anthropic's thoughts are part of the answer, and may be longer than `max_tokens`.
  const thoughts = countIn(Object(fields.get("thinking")).budget_tokens, 0);
  const each = Math.max(Math.max(...limits) || unlimited, thoughts);
  // The model writes `best_of` answers, and returns `n` of them.
  const answers = Math.max(countIn(fields.get("n"), 1), countIn(fields.get("best_of"), 1));
  // If `output` is 0, `each` can be 0 while `answers` is infinite. Their product would be NaN.
  if (answers === Number.POSITIVE_INFINITY) return answers;
  return each * answers * promptsIn(fields.get("prompt"));
}

/** @returns `absent` for null and undefined, and Infinity for all other values that are no counts */
function countIn(value: unknown, absent: number): number {
  if (value === undefined || value === null) return absent;
  return Number.isSafeInteger(value) && (value as number) > 0
    ? (value as number)
    : Number.POSITIVE_INFINITY;
}

/** Returns the number of prompts: each text of a list is one, and so is each list of tokens. */
function promptsIn(prompt: unknown): number {
  if (!Array.isArray(prompt) || prompt.every((each) => typeof each === "number")) return 1;
  return prompt.length;
}

/**
 * Returns the fields of a JSON object, with names in lower case, because servers written in Go ignore
 * the case of names.
 *
 * @returns undefined if the text is not a JSON object, or if two names are equal. Some servers use the
 * first of these fields, and others use the last one
 */
function fieldsIn(json: string): ReadonlyMap<string, unknown> | undefined {
  let body: unknown;
  try {
    body = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
  const fields = new Map(
    Object.entries(body).map(([name, value]) => [name.toLowerCase(), value] as const),
  );
  return fields.size === nameCountIn(json) ? fields : undefined;
}

/**
 * Returns the number of names of a JSON object, without those of objects inside. A name that occurs
 * twice counts twice.
 */
function nameCountIn(json: string): number {
  let depth = 0;
  let names = 0;
  for (let index = 0; index < json.length; index++) {
    const character = json[index];
    if (character === '"') {
      // Skips the string. The text is valid JSON, so the string has an end.
      while (json[++index] !== '"') if (json[index] === "\\") index++;
    } else if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
    else if (character === ":" && depth === 1) names++;
  }
  return names;
}
