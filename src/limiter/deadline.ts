import { StoreError } from "../stores/store-error.ts";

/**
 * Waits for a decision, but no longer than `timeoutMs`.
 *
 * @throws {StoreError} ("late") when the time is up; what was asked may still be charged
 */
export async function withDeadline<T>(decision: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new StoreError("late", `no decision within ${timeoutMs} ms`));
  }, timeoutMs);
  try {
    return await Promise.race([decision, late]);
  } finally {
    clearTimeout(timer);
  }
}
