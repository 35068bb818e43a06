import { send } from "./client.ts";

/**
 * Runs a task beside requests that no rule applies to, one after the other.
 *
 * @returns its result, and what the slowest of those took, in milliseconds: so much of any request's
 * time at that moment is the machine's, and not the limiter's
 */
export async function besideControl<Result>(
  url: URL,
  freePath: string,
  task: () => Promise<Result>,
): Promise<{ result: Result; controlMs: number }> {
  let isOver = false;
  let controlMs = 0;
  const control = (async () => {
    while (!isOver) {
      const sentAt = performance.now();
      await send(url, freePath);
      controlMs = Math.max(controlMs, performance.now() - sentAt);
    }
  })();
  const result = await task().finally(() => {
    isOver = true;
  });
  await control;
  return { result, controlMs };
}
