import { type BlockedReport, startWatchdog } from "./watchdog.ts";

/**
 * The additional time, in milliseconds, after which the watchdog ends the process. If the thread is
 * free, its own timer ends the wait earlier, so that an error can be thrown.
 */
const MORE_MS = 500;

/** How code of a configuration is guarded. */
export interface GuardOptions {
  /** The code, as the start of a sentence: `The file`. */
  readonly subject: string;
  /** The message for code that neither returns nor blocks the thread. */
  readonly unsettled: string;
  /** The longest time to wait, in milliseconds. */
  readonly timeoutMs: number;
  /** The report to print if the code blocks the thread for longer. The process then ends. */
  readonly blocked: BlockedReport;
}

/**
 * Runs a function that runs code of a configuration. It keeps the code from ending this process, from blocking it,
 * from writing to the standard output, which may be JSON for a program, and from making the process wait forever.
 *
 * @throws the error that the code throws, also in a timer or in a promise that nothing awaits
 */
export async function runGuarded<T>(run: () => Promise<T>, options: GuardOptions): Promise<T> {
  const { subject, unsettled, timeoutMs, blocked } = options;
  const stopWatchdog = startWatchdog(timeoutMs + MORE_MS, blocked);
  const { exit } = process;
  const { write } = process.stdout;
  process.stdout.write = process.stderr.write.bind(process.stderr);
  let reject: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_, rejectPromise) => {
    reject = rejectPromise;
  });
  process.exit = () => {
    const error = new Error(`${subject} calls process.exit. Throw an error instead.`);
    // The code may catch the error.
    reject(error);
    throw error;
  };
  const fail = () => reject(new Error(unsettled));
  const timer = setTimeout(fail, timeoutMs);
  // If nothing else is pending, Node would end without a message. It emits this event first.
  timer.unref();
  process.once("beforeExit", fail);
  // Promises that nothing handles end up here too. The listener of the whole command would end the process.
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", reject);
  try {
    const result = await Promise.race([run(), failed]);
    // Node reports promises that nothing handles only at the end of a turn.
    await Promise.race([new Promise((resolve) => setImmediate(resolve)), failed]);
    return result;
  } finally {
    stopWatchdog();
    clearTimeout(timer);
    process.off("beforeExit", fail);
    process.off("uncaughtException", reject);
    for (const other of others) process.on("uncaughtException", other);
    process.exit = exit;
    process.stdout.write = write;
  }
}
