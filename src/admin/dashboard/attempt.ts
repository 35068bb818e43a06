import { OperationError } from "../operations.ts";

/** The result of an operation that may fail, so that a page can show what it has. */
export type Attempt<T> =
  | { readonly value: T; readonly fault?: undefined }
  | { readonly value?: undefined; readonly fault: string };

/** How long a page waits for an operation, in milliseconds. */
const MAX_WAIT_MS = 3000;

const NO_ANSWER = "The control object does not answer. Limits are still enforced.";

/** Awaits an operation for at most three seconds. Never rejects. */
export async function attempt<T>(operation: () => Promise<T>): Promise<Attempt<T>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const late = new Promise<Attempt<T>>((resolve) => {
      timer = setTimeout(() => resolve({ fault: NO_ANSWER }), MAX_WAIT_MS);
    });
    return await Promise.race([operation().then((value) => ({ value })), late]);
  } catch (error) {
    return { fault: faultText(error) };
  } finally {
    if (timer !== undefined) clearTimeout(timer);
  }
}

/** Returns a text for operators. The messages of unexpected errors may have secrets, so they are left out. */
export function faultText(error: unknown): string {
  return error instanceof OperationError ? error.message : NO_ANSWER;
}
