const PARENT_CHECK_MS = 250;

/**
 * From now on a request to end does not end this process: the promise resolves instead, and who
 * called can end things in order. Asked a second time, the process exits without waiting.
 */
export function stopRequest(): Promise<"stop"> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (asked) process.exit(1);
        asked = true;
        resolve("stop");
      });
    }
    if (process.env.npm_lifecycle_event !== undefined) {
      whenParentEnds(() => resolve("stop"));
    }
  });
}

/**
 * `npm run` starts scripts through a shell, and a SIGTERM for npm ends npm and that shell alone:
 * that the shell is gone is then all that this process learns of it.
 */
function whenParentEnds(callback: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    callback();
  }, PARENT_CHECK_MS);
  timer.unref();
}
