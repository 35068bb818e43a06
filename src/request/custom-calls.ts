import type { CustomFunctions } from "../config/custom.ts";
import type { CustomContext } from "../config/custom-functions.ts";

/**
 * The reason why a function in `custom` has no result: it took too long, or it threw an error.
 */
export type CustomFailure = "timeout" | "threw";

/**
 * Reports that a function in `custom.keys` failed. The error is not passed, because it may contain a
 * secret.
 */
export type OnCustomKeyFailure = (name: string, cause: CustomFailure) => void;

/** The result of a function that users wrote. */
type CallResult =
  | { readonly value: unknown; readonly failure?: undefined }
  | { readonly failure: CustomFailure };

const TIMEOUT = Symbol("timeout");

/**
 * Calls the functions for keys and costs `custom:NAME`, for one request.
 *
 * All functions of a request share one deadline: `timeoutMs` after the request has arrived. If a
 * function takes longer, its key counts as absent, or its cost as unknown, and the request is decided
 * without its value. Otherwise a client could send its body slowly to a function that reads the body.
 * The request would then be undecided, and an open rule would let it pass.
 */
export class CustomCalls {
  readonly #functions: CustomFunctions;
  readonly #request: Request;
  readonly #context: CustomContext;
  readonly #timeoutMs: number;
  readonly #arrivedAt: number;
  readonly #onKeyFailure: OnCustomKeyFailure;
  #firstStartAt: number | undefined;
  #lastEndAt = 0;
  #pending = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timeout: Promise<typeof TIMEOUT> | undefined;

  /** @param arrivedAt when the request arrived, in milliseconds since the Unix epoch */
  constructor(
    functions: CustomFunctions,
    request: Request,
    context: CustomContext,
    timeoutMs: number,
    onKeyFailure: OnCustomKeyFailure,
    arrivedAt = Date.now(),
  ) {
    this.#functions = functions;
    this.#request = request;
    this.#context = context;
    this.#timeoutMs = timeoutMs;
    this.#onKeyFailure = onKeyFailure;
    this.#arrivedAt = arrivedAt;
  }

  /**
   * The milliseconds from the start of the first call to the end of the last call; at most
   * `timeoutMs`.
   */
  get spentMs(): number {
    if (this.#firstStartAt === undefined) return 0;
    return Math.min(this.#timeoutMs, Math.max(0, this.#lastEndAt - this.#firstStartAt));
  }

  /** Calls the function for a key, and returns its text; undefined if the key is absent. */
  async computeKey(name: string): Promise<string | undefined> {
    const { value, failure } = await this.#call("keys", name);
    if (failure) this.#onKeyFailure(name, failure);
    return typeof value === "string" ? value : undefined;
  }

  /** Calls the function for a cost. Never rejects. */
  computeCost(name: string): Promise<CallResult> {
    return this.#call("costs", name);
  }

  async #call(group: "keys" | "costs", name: string): Promise<CallResult & { value?: unknown }> {
    const compute = this.#functions[group]?.get(name);
    if (!compute) return { value: undefined };
    this.#firstStartAt ??= Date.now();
    try {
      const result: unknown = compute(this.#request, this.#context);
      const value = isThenable(result) ? await this.#inTime(result) : result;
      return value === TIMEOUT ? { failure: "timeout" } : { value };
    } catch {
      return { failure: "threw" };
    } finally {
      this.#lastEndAt = Date.now();
    }
  }

  /**
   * Waits for a result until the deadline. A rejection after the deadline needs no handler, because
   * `Promise.race` has already added one.
   */
  async #inTime(result: PromiseLike<unknown>): Promise<unknown> {
    this.#timeout ??= this.#startTimer();
    this.#pending++;
    try {
      return await Promise.race([result, this.#timeout]);
    } finally {
      this.#pending--;
      if (this.#pending === 0) {
        clearTimeout(this.#timer as ReturnType<typeof setTimeout>);
        this.#timeout = undefined;
      }
    }
  }

  #startTimer(): Promise<typeof TIMEOUT> {
    const elapsedMs = Math.max(0, Date.now() - this.#arrivedAt);
    // `weir replay` loads files that import this one in Node 20, which has no Promise.withResolvers.
    return new Promise((resolve) => {
      this.#timer = setTimeout(() => resolve(TIMEOUT), Math.max(0, this.#timeoutMs - elapsedMs));
    });
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    "then" in value &&
    typeof value.then === "function"
  );
}
