import type { CustomFunctions } from "../config/custom.ts";
import type { CustomContext } from "../config/custom-functions.ts";
import { CustomCalls, type CustomFailure } from "../request/custom-calls.ts";
import { BODYLESS } from "./described-request.ts";

/** Calls the functions in `custom` for one explanation, and each function at most once. */
export class RememberedCalls extends CustomCalls {
  readonly #timeoutMs: number;
  /** Says that a function which reads the body found none. A description often lacks it. */
  readonly #bodyNote: string;
  readonly #failures: Map<string, CustomFailure>;
  readonly #keys = new Map<string, Promise<string | undefined>>();

  constructor(
    functions: CustomFunctions,
    request: Request,
    context: CustomContext,
    timeoutMs: number,
  ) {
    const failures = new Map<string, CustomFailure>();
    super(functions, request, context, timeoutMs, (name, cause) => failures.set(name, cause));
    this.#failures = failures;
    this.#timeoutMs = timeoutMs;
    const lacksBody = request.body === null && !BODYLESS.includes(request.method);
    this.#bodyNote = lacksBody ? "; this request is explained without a body" : "";
  }

  override computeKey(name: string): Promise<string | undefined> {
    const computed = this.#keys.get(name) ?? super.computeKey(name);
    this.#keys.set(name, computed);
    return computed;
  }

  /** Returns why the result of a function is absent, as a part of a sentence. */
  keyFault(name: string): string {
    switch (this.#failures.get(name)) {
      case "timeout":
        return `custom.keys.${name} took longer than ${this.#timeoutMs} ms`;
      case "threw":
        return `custom.keys.${name} threw an error${this.#bodyNote}`;
      default:
        return `custom.keys.${name} returned no text, or an empty or too long one${this.#bodyNote}`;
    }
  }
}
