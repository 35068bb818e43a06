/** The exit codes of the commands for operators. */
export const EXIT = {
  done: 0,
  /** The Worker has refused the change, or it has no such rule or override. */
  refused: 1,
  /** The Worker could not be asked, or it cannot carry out any change. */
  unavailable: 2,
} as const;

/** A command that could not be carried out. The message contains no token and no value of a client. */
export class AdminError extends Error {
  readonly exitCode: 1 | 2;
  /** The status of the API's answer; undefined if it has not answered. */
  readonly status: number | undefined;

  constructor(exitCode: 1 | 2, message: string, status?: number) {
    super(message);
    this.exitCode = exitCode;
    this.status = status;
  }
}

/** Returns the error for options that do not fit together. */
export function wrongOptions(message: string): AdminError {
  return new AdminError(EXIT.refused, message);
}
