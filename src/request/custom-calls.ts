import type { ComputedCost, Cost } from "../config/cost.ts";
import type { CustomContext, CustomFunctions } from "../config/custom.ts";
import type { LimitSource } from "../config/limit-source.ts";
import type { Rule, Window } from "../config/rule.ts";
import { MAX_LIMIT } from "../config/window.ts";
import { BoundedClones } from "./body-room.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import type { AskedClient, ClientLimits } from "./client-limits.ts";
import { withTimeout } from "./timeout.ts";

/** The reason why a function in `custom` has no result. */
export type CustomFailure = "timeout" | "threw";

/** The input of the functions for one request. */
interface CallOptions {
  readonly functions: CustomFunctions;
  readonly request: Request;
  readonly context: CustomContext;
  readonly timeoutMs: number;
  /** When the request arrived, in milliseconds since the Unix epoch. */
  readonly arrivedAt: number;
  /**
   * How long the request may wait for its turn, in milliseconds. The runtime keeps its body meanwhile.
   *
   * @default 0
   */
  readonly waitMs?: number;
  /** Reports that a function in `custom.keys` failed. Does not pass the error, because it may contain a secret. */
  readonly onKeyFailure: (name: string, cause: CustomFailure) => void;
}

interface CallResult {
  readonly value?: unknown;
  readonly failure?: CustomFailure;
}

const TIMEOUT = Symbol("timeout");

/**
 * Calls the functions for keys and costs `custom:NAME`, for one request.
 *
 * All functions of a request share one deadline: `timeoutMs` after the request has arrived. If a function takes
 * longer, its key counts as absent, or its cost as unknown, and the request is decided without its value. Otherwise a
 * client could send its body slowly to a function that reads the body. The request would then be undecided, and a
 * rule with `onError: "open"` would let it pass.
 */
export class CustomCalls {
  readonly #options: CallOptions;
  /** The results by the names of the functions. Each function is called once. */
  readonly #results = new Map<string, Promise<CallResult>>();
  #firstStartAt: number | undefined;
  #lastEndAt = 0;
  #clones: BoundedClones | undefined;

  constructor(options: CallOptions) {
    this.#options = options;
  }

  /** The milliseconds from the start of the first call to the end of the last call; at most `timeoutMs`. */
  get spentMs(): number {
    if (this.#firstStartAt === undefined) return 0;
    return Math.min(this.#options.timeoutMs, Math.max(0, this.#lastEndAt - this.#firstStartAt));
  }

  /** @returns undefined if the key is absent */
  async computeKey(name: string): Promise<string | undefined> {
    const { value } = await this.#call("keys", name);
    return typeof value === "string" ? value : undefined;
  }

  /** Never rejects. */
  computeCost(name: string): Promise<CallResult> {
    return this.#call("costs", name);
  }

  /** Returns a client's number, which waits for its function until the deadline. */
  async limitOf(limits: ClientLimits, source: LimitSource, client: AskedClient) {
    const { request, context } = this.#options;
    this.#firstStartAt ??= Date.now();
    const number = await limits.numberFor(source, { ...client, request }, context, this.#restMs);
    this.#lastEndAt = Date.now();
    return number;
  }

  /**
   * Must be called when the request is decided. The functions of shadow rules may still run. When they have ended, all
   * clones of the request end.
   */
  close(): void {
    this.#clones?.restore();
    Promise.allSettled(this.#results.values()).then(() => this.#clones?.close());
  }

  #call(group: "keys" | "costs", name: string): Promise<CallResult> {
    const id = `${group} ${name}`;
    const result = this.#results.get(id) ?? this.#start(group, name);
    this.#results.set(id, result);
    return result;
  }

  async #start(group: "keys" | "costs", name: string): Promise<CallResult> {
    const compute = this.#options.functions[group]?.get(name);
    if (!compute) return {};
    this.#firstStartAt ??= Date.now();
    this.#clones ??= new BoundedClones(this.#options.request, this.#endsAt);
    let failure: CustomFailure = "timeout";
    try {
      const result: unknown = compute(this.#options.request, this.#options.context);
      const value = isThenable(result) ? await this.#inTime(result) : result;
      if (value !== TIMEOUT) return { value };
      this.#clones.endReads();
    } catch {
      failure = "threw";
    } finally {
      this.#lastEndAt = Date.now();
    }
    if (group === "keys") this.#options.onKeyFailure(name, failure);
    return { failure };
  }

  /** When the request must have been decided, in milliseconds since the Unix epoch. */
  get #endsAt(): number {
    const { arrivedAt, timeoutMs, waitMs = 0 } = this.#options;
    return arrivedAt + 2 * timeoutMs + waitMs;
  }

  /** Waits for a result until the deadline. `Promise.race` handles a rejection after the deadline. */
  #inTime(result: PromiseLike<unknown>): Promise<unknown> {
    return withTimeout(Promise.resolve(result), this.#restMs, () => TIMEOUT);
  }

  /** The milliseconds until the deadline. */
  get #restMs(): number {
    const { arrivedAt, timeoutMs } = this.#options;
    const elapsedMs = Math.max(0, Date.now() - arrivedAt);
    return Math.max(0, timeoutMs - elapsedMs);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}

/** The reason why a cost is unknown. */
export type CostFailure = CustomFailure | "missing" | "invalid";

/**
 * Reports that the cost under a rule could not be read. Does not pass the value, because a client may have chosen it.
 *
 * @param source the value that determines the cost, in the notation of the configuration
 */
export type OnUnreadableCost = (rule: string, source: string, cause: CostFailure) => void;

type BodyFacts = Pick<CanonicalRequest, "headers" | "hasBody">;

/** Whether a function of the user determines the cost of a request under a rule. */
export function hasCustomCost({ cost }: Rule): boolean {
  return customNameIn(cost) !== undefined;
}

/** @returns undefined unless the length of the body determines the cost of the rule */
export function bodyCostOf(
  rule: Rule,
  windows: readonly Window[],
  request: BodyFacts,
  onUnreadable: OnUnreadableCost,
): number | undefined {
  const { cost } = rule;
  if (typeof cost !== "object" || typeof cost.before !== "object") return undefined;
  if (cost.before.kind !== "body") return undefined;
  const length = bodyLengthOf(request);
  if (typeof length === "number") return capped(length, cost);
  onUnreadable(rule.name, "body:bytes", length);
  return unknownCost(cost, smallestLimit(windows, rule.shards));
}

/** @returns undefined unless a function determines the cost of the rule. Never rejects */
export async function customCostOf(
  rule: Rule,
  computeCost: (name: string) => Promise<CallResult>,
  onUnreadable: OnUnreadableCost,
): Promise<number | undefined> {
  const { cost } = rule;
  const name = customNameIn(cost);
  if (typeof cost !== "object" || name === undefined) return undefined;
  const { failure, value } = await computeCost(name);
  if (failure === undefined && isCost(value)) return capped(value, cost);
  const cause = failure ?? (value === undefined || value === null ? "missing" : "invalid");
  onUnreadable(rule.name, `custom:${name}`, cause);
  return unknownCost(cost, 1);
}

/**
 * Returns the lowest cost that the function of a rule's cost may return: its `atLeast`, or else 0. The rule's `max`
 * also bounds this cost.
 */
export function lowestCost(cost: Cost, functions: CustomFunctions["costs"]): number {
  const atLeast = functions?.get(customNameIn(cost) ?? "")?.atLeast;
  return typeof cost === "object" && isCost(atLeast) ? capped(atLeast, cost) : 0;
}

/**
 * Returns the cost of a request whose true cost is unknown. `default` never lowers this cost, because a client can
 * make a cost unknown.
 *
 * @param withoutMax the cost if the configuration has neither `max` nor a higher `default`
 */
export function unknownCost(
  { max = 0, default: standard = 0 }: ComputedCost,
  withoutMax: number,
): number {
  return Math.max(standard, max || withoutMax);
}

/** Whether a value is a cost: a whole number from 0 to the largest limit. */
export function isCost(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_LIMIT;
}

function customNameIn(cost: Cost): string | undefined {
  const before = typeof cost === "object" ? cost.before : undefined;
  return typeof before === "object" && before.kind === "custom" ? before.name : undefined;
}

/** `Math.abs` turns -0 into 0. */
function capped(value: number, { max = MAX_LIMIT }: ComputedCost): number {
  return Math.min(Math.abs(value), max);
}

/** Returns the length in bytes. The runtime forwards at most as many bytes as Content-Length states. */
function bodyLengthOf({ headers, hasBody }: BodyFacts): number | CostFailure {
  // The transfer coding determines where the body ends; Content-Length has no effect.
  if (headers.has("transfer-encoding")) return "missing";
  const length = headers.get("content-length");
  if (length === null) return hasBody ? "missing" : 0;
  return /^\d{1,15}$/.test(length) ? Number(length) : "invalid";
}

/**
 * Returns the cost of a body of unknown length: the whole limit of the client's smallest window, or of the smallest
 * shard of this window. The cost is at least 1, because a cost of 0 passes even a limit of 0.
 */
function smallestLimit(windows: readonly Window[], shards: number): number {
  const limits = windows.map(({ limit, concurrent }) => (concurrent ? MAX_LIMIT : limit));
  const smallest = Math.min(...limits);
  return Math.max(1, Math.floor(smallest / shards));
}
