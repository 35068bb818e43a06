import { isObject } from "./body-text.ts";

/** The kinds of tokens that providers bill at different prices. */
type TokenKind = "input" | "cacheRead" | "cacheWrite" | "output";

/** The number of tokens of each kind. No token belongs to two kinds. */
type TokenCounts = Readonly<Record<TokenKind, number>>;

/**
 * The maximum of a count, which no response of a model reaches. Multiplied by the highest weight, it is still a safe
 * integer, and less than the highest cost of a rule.
 */
export const MAX_TOKENS = 100_000_000;

/**
 * The counts in one `usage` object, under the names of all providers. NaN replaces a value that is not a count,
 * such as -1 or "20".
 */
interface Usage {
  prompt?: number | undefined;
  output?: number | undefined;
  /** The sum that OpenAI's APIs send. Anthropic sends no sum. */
  total?: number | undefined;
  cacheRead?: number | undefined;
  cacheWrite?: number | undefined;
  /** Whether the count of the prompt lacks the cached tokens. Undefined if the object does not show it. */
  isCacheApart?: boolean | undefined;
}

const COUNTS = ["prompt", "output", "total", "cacheRead", "cacheWrite"] as const;

/** The types of OpenAI's events that end a stream and have its counts. */
const LAST_EVENT = /^(response|transcript\.text|image_\w+)\.(completed|incomplete|failed|done)$/;

/**
 * Collects the `usage` objects of one response. Providers repeat their counts in a stream (Anthropic's
 * `message_delta`, and vLLM's `continuous_usage_stats`), so a count replaces an earlier one. A lower count can be the
 * right one: some servers tell the cached part of the input apart only in the last event. A count of 0 replaces no
 * other, because some servers end with zeros. If the object has other tokens of the prompt, its zeros are counts too.
 */
export class UsageTally {
  readonly #usage: Usage = {};
  readonly #odd = new Set<string>();
  #hasAnswer = false;
  #hasEnded = false;
  #isError = false;

  /** @param message the JSON body of a response, or the JSON data of one of its events */
  add(message: unknown, isBody = false): void {
    if (!isObject(message)) return;
    const { type, usage, x_groq, response, message: started } = message;
    const isLast = isBody || (typeof type === "string" && LAST_EVENT.test(type));
    if (type === "message_stop") this.#hasEnded = true;
    for (const each of [usage, propertyOf(x_groq, "usage"), propertyOf(response, "usage")]) {
      if (!isObject(each)) continue;
      const found = readUsage(each);
      this.#merge(found);
      this.#hasAnswer ||= isLast
        ? (found.output ?? found.total) !== undefined
        : answerTokensIn(found) > 0;
      this.#hasEnded ||= isLast;
    }
    const first = propertyOf(started, "usage");
    if (isObject(first)) this.#merge(readUsage(first));
  }

  /** @param message the JSON body of an error response */
  addError(message: unknown): void {
    if (isObject(message)) this.#isError = isObject(message.error) || message.object === "error";
  }

  /** Marks the end of a stream of chat completions. */
  end(): void {
    this.#hasEnded = true;
  }

  /** Records that the answer continues after the counts, so that they are not the final counts. */
  resume(): void {
    if (!this.#hasEnded) this.#hasAnswer = false;
  }

  /** @returns undefined if no message had counts */
  counts(): TokenCounts | undefined {
    const { prompt, output, total, cacheRead = 0, cacheWrite = 0 } = this.#usage;
    if (prompt === undefined && output === undefined && total === undefined) return undefined;
    return {
      input: (prompt ?? 0) - (cacheRead + cacheWrite - cacheApartIn(this.#usage)),
      cacheRead,
      cacheWrite,
      output: answerTokensIn(this.#usage),
    };
  }

  /** Whether an event had the counts of an answer, and the answer has not continued since. */
  get hasAnswer(): boolean {
    return this.#hasAnswer;
  }

  /**
   * Whether the counts are final: the provider has ended the response, the counts include the answer, and each count
   * is valid. At the start of a stream, Anthropic sends the counts of the input with one output token, and other
   * servers send counts of 0.
   */
  get isFinal(): boolean {
    return this.#hasEnded && this.#hasAnswer && this.#odd.size === 0;
  }

  /** Whether the provider has reported an error in the format of OpenAI's or Anthropic's API. */
  get isError(): boolean {
    return this.#isError;
  }

  #merge({ isCacheApart = this.#usage.isCacheApart, ...counts }: Usage): void {
    const { prompt = 0, cacheRead = 0, cacheWrite = 0, output = 0 } = counts;
    const hasInput = prompt + cacheRead + cacheWrite > 0;
    // A total belongs to the counts beside it.
    if (hasInput || output > 0) delete this.#usage.total;
    this.#usage.isCacheApart = isCacheApart;
    for (const name of COUNTS) {
      const count = counts[name];
      if (count === undefined) continue;
      if (Number.isNaN(count)) {
        this.#odd.add(name);
        continue;
      }
      this.#odd.delete(name);
      const isZeroOfInput = hasInput && name !== "output" && name !== "total";
      if (count > 0 || isZeroOfInput) this.#usage[name] = count;
      else this.#usage[name] ??= 0;
    }
  }
}

/** Returns the tokens of the answer. Gemini's compatible API counts the tokens of thoughts only in the total. */
function answerTokensIn(usage: Usage): number {
  const { prompt = 0, output = 0, total = 0 } = usage;
  return Math.max(output, total - prompt - cacheApartIn(usage));
}

/** Returns the cached tokens that the count of the prompt lacks. */
function cacheApartIn({ prompt = 0, cacheRead = 0, cacheWrite = 0, isCacheApart }: Usage): number {
  const cached = cacheRead + cacheWrite;
  return isCacheApart || cached > prompt ? cached : 0;
}

function readUsage(usage: Record<string, unknown>): Usage {
  const details = usage.prompt_tokens_details ?? usage.input_tokens_details;
  const counts: Usage = {
    prompt: countIn(usage.prompt_tokens) ?? countIn(usage.input_tokens),
    output: countIn(usage.completion_tokens) ?? countIn(usage.output_tokens),
    total: countIn(usage.total_tokens),
    cacheRead:
      countIn(propertyOf(details, "cached_tokens")) ?? countIn(usage.cache_read_input_tokens),
    cacheWrite:
      countIn(propertyOf(details, "cache_write_tokens")) ??
      countIn(usage.cache_creation_input_tokens),
  };
  const isOpenAi = usage.prompt_tokens !== undefined || isObject(details);
  return { ...counts, isCacheApart: isOpenAi ? false : isCacheApartIn(counts) };
}

/**
 * Whether the prompt lacks the cached tokens under Anthropic's names: always in Anthropic's API. If another server
 * adds a total, the sum shows it.
 */
function isCacheApartIn({
  prompt = 0,
  output = 0,
  total = Number.POSITIVE_INFINITY,
  cacheRead,
  cacheWrite,
}: Usage): boolean | undefined {
  if (cacheRead === undefined && cacheWrite === undefined) return undefined;
  return total >= prompt + output + (cacheRead ?? 0) + (cacheWrite ?? 0);
}

/** @returns NaN for a value that is not a count */
function countIn(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  const isCount = Number.isInteger(value) && (value as number) >= 0;
  return isCount && (value as number) <= MAX_TOKENS ? (value as number) : Number.NaN;
}

function propertyOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

/** The cost of one token of each kind. The total cost is rounded up to a whole number. */
export interface TokenWeights {
  /**
   * The cost of a token of the prompt that was not in the provider's cache.
   *
   * @default 1
   */
  readonly input?: number | undefined;
  /**
   * The cost of a token of the answer. Thoughts are part of the answer.
   *
   * @default 1
   * @example 5
   */
  readonly output?: number | undefined;
  /**
   * The cost of a token of the prompt that the provider read from its cache.
   *
   * @default the cost of an input token
   * @example 0.1
   */
  readonly cacheRead?: number | undefined;
  /**
   * The cost of a token of the prompt that the provider wrote to its cache.
   *
   * @default the cost of an input token
   * @example 1.25
   */
  readonly cacheWrite?: number | undefined;
}

const KINDS: readonly TokenKind[] = ["input", "output", "cacheRead", "cacheWrite"];
const MAX_WEIGHT = 1_000_000;

/** @throws TypeError if a weight is not a number from 0 to 1000000, or if a kind does not exist */
export function createTokenCost(
  weights: TokenWeights = {},
): (counts: Partial<TokenCounts>) => number {
  for (const [kind, weight] of Object.entries(weights)) {
    if (!KINDS.includes(kind as TokenKind)) {
      throw new TypeError(`weights.${kind}: unknown; the weights are ${KINDS.join(", ")}`);
    }
    const isWeight = typeof weight === "number" && weight >= 0 && weight <= MAX_WEIGHT;
    if (weight !== undefined && !isWeight) {
      throw new TypeError(`weights.${kind}: must be a number from 0 to ${MAX_WEIGHT}`);
    }
  }
  const { input = 1, output = 1, cacheRead = input, cacheWrite = input } = weights;
  return (counts) => {
    const cost =
      input * (counts.input ?? 0) +
      output * (counts.output ?? 0) +
      cacheRead * (counts.cacheRead ?? 0) +
      cacheWrite * (counts.cacheWrite ?? 0);
    // 30 tokens of 0.1 are 3.0000000000000004, which must not become 4.
    return Math.ceil(Number(cost.toPrecision(15)));
  };
}
