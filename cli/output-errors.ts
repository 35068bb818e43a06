/** Errors of the standard output, such as of a full disk. */
export interface OutputErrors {
  /** Reports the first error. Call it when everything has been written. */
  report(): void;
}

/**
 * Watches for errors of the standard output. Otherwise they would be lost, or end the process with a stack trace.
 * The command goes on, because it may have to remove what it has created elsewhere.
 */
export function watchOutput(): OutputErrors {
  let first: NodeJS.ErrnoException | undefined;
  process.stdout.on("error", (error) => {
    first ??= error;
  });
  // There is no other place to report an error of the standard error.
  process.stderr.on("error", () => {});
  return {
    report() {
      // The reader, such as `head`, has read enough.
      if (!first || first.code === "EPIPE") return;
      console.error(`The output could not be written. ${first.message}`);
      process.exitCode = 2;
    },
  };
}
