/**
 * Waits for a task, but only for a time. The task continues after this time, and its caller must keep it alive.
 *
 * @param ms the maximum time, in milliseconds
 * @param onTimeout returns the result after this time, or throws the error
 */
export async function withTimeout<Result, Late>(
  task: Promise<Result>,
  ms: number,
  onTimeout: () => Late | Promise<Late>,
): Promise<Result | Late> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeOver = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([task, timeOver.then(onTimeout)]);
  } finally {
    clearTimeout(timer as ReturnType<typeof setTimeout>);
  }
}
