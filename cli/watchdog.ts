import { Worker } from "node:worker_threads";

/** The text to print if a file blocks this process. */
export interface BlockedReport {
  readonly text: string;
  /** The standard output (1), or the standard error (2). */
  readonly descriptor: 1 | 2;
  /** @default 1 */
  readonly exitCode?: 1 | 2;
}

/** The time from the first attempt to end the process until the second one, in milliseconds. */
const GRACE_MS = 1000;

/**
 * Ends this process with the exit code of the report if `stop` is not called in time, even if the main thread is
 * blocked, as by `while (true) {}` in a file that it loads. A timer of the main thread would not run
 * then. A child process that loads the file could not pass on the functions of a configuration.
 *
 * @param timeoutMs the longest time, in milliseconds
 * @returns a function that ends the watch
 * @example
 * const stop = startWatchdog(10_000, { text: "The file blocks this process.", descriptor: 2 });
 */
export function startWatchdog(timeoutMs: number, report: BlockedReport): () => void {
  const worker = new Worker(`(${watch})()`, {
    eval: true,
    workerData: { ...report, timeoutMs, graceMs: GRACE_MS, pid: process.pid },
    // The worker needs no options of the process, such as a loader for TypeScript.
    execArgv: [],
  });
  // Without the watch, the command still works.
  worker.on("error", () => {});
  worker.unref();
  return () => {
    void worker.terminate();
  };
}

/** The code of the worker. It can use nothing from this module, because only its text is passed on. */
function watch(): void {
  const { workerData } = process.getBuiltinModule("node:worker_threads");
  const { Session } = process.getBuiltinModule("node:inspector");
  const { writeSync } = process.getBuiltinModule("node:fs");
  const { text, descriptor, exitCode = 1, timeoutMs, graceMs, pid } = workerData;

  setTimeout(() => {
    writeSync(descriptor, `${text}\n`);
    // If the main thread waits for the operating system, it evaluates nothing. Then only a signal
    // ends the process, with another exit code.
    setTimeout(() => process.kill(pid, "SIGKILL"), graceMs);
    const session = new Session();
    session.connectToMainThread();
    // The file may have replaced process.exit. Node would print a notice about the session at exit.
    session.post("Runtime.evaluate", {
      expression: `process.getBuiltinModule("node:fs").closeSync(2); process.reallyExit(${exitCode});`,
    });
  }, timeoutMs);
}
