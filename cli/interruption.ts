/**
 * The exit codes of programs that a signal has ended, by convention: 128 plus the number of the
 * signal.
 */
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

type Signal = keyof typeof EXIT_CODES;

/** A second signal within this time, in milliseconds, is ignored. */
const SAME_INTERRUPTION_MS = 1000;

/** Watches signals, so that a run can delete its keys from the database before it ends. */
interface Interruption {
  /** The exit code of the signal that ended the run; undefined if there was none. */
  exitCode(): number | undefined;
  /** Gives the signals their default effect again. */
  [Symbol.dispose](): void;
}

/**
 * Stops a run at Ctrl-C, when its terminal is closed, and at SIGTERM. A second signal ends the process
 * at once. At Ctrl-C, npx and npm pass the signal on to a process that has already received it from
 * the terminal. So a second signal counts only some time after the first one.
 */
export function onInterruption(stop: (reason: string) => void): Interruption {
  let [exitCode, firstAt]: [number | undefined, number] = [undefined, 0];
  const interrupt = (signal: Signal) => {
    if (exitCode !== undefined) {
      if (performance.now() - firstAt > SAME_INTERRUPTION_MS) process.exit(EXIT_CODES[signal]);
      return;
    }
    [exitCode, firstAt] = [EXIT_CODES[signal], performance.now()];
    stop(`ended by ${signal}`);
  };
  const signals = Object.keys(EXIT_CODES) as Signal[];
  for (const signal of signals) process.on(signal, interrupt);
  return {
    exitCode: () => exitCode,
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, interrupt);
    },
  };
}
