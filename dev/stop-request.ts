const PARENT_CHECK_MS = 250;

/**
 * Handles SIGINT, SIGTERM and SIGHUP. The first signal resolves the promise, so that the caller can
 * end its children in order. A second signal ends the process at once.
 */
export function waitForStopRequest(): Promise<"stop"> {
  return new Promise((resolve) => {
    let isRequested = false;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (isRequested) process.exit(1);
        isRequested = true;
        resolve("stop");
      });
    }
    if (process.env.npm_lifecycle_event !== undefined) {
      onParentEnd(() => resolve("stop"));
    }
  });
}

/**
 * Calls a function after the parent process has ended. `npm run` starts scripts through a shell,
 * and a SIGTERM to npm ends only npm and the shell, so this process gets no signal.
 */
function onParentEnd(callback: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    callback();
  }, PARENT_CHECK_MS);
  timer.unref();
}
