import { send } from "./client.ts";

/**
 * Runs a task. At the same time, it sends requests to which no rule applies, one after the other.
 *
 * @returns the result of the task, and the time of the slowest request in milliseconds. This time
 * depends on the machine, and not on the limiter
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
