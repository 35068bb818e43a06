/** The exit codes of the commands for operators. */
export const EXIT = {
  done: 0,
  /** The Worker has refused the change, or it has no such rule or override. */
  refused: 1,
  /** The Worker could not be asked, or it cannot carry out any change. Nothing was changed. */
  unavailable: 2,
  /** The Worker was asked for a change, and the change or a part of it may have been made. */
  uncertain: 3,
} as const;

/** What an operator can do about a change whose result is not known. */
export const MAYBE_MADE =
  "The change may have been made: look at it before you repeat the command.";

/** A command that could not be carried out. The message contains no token and no value of a client. */
export class AdminError extends Error {
  readonly exitCode: 1 | 2 | 3;
  /** The status of the API's answer; undefined if it has not answered. */
  readonly status: number | undefined;

  constructor(exitCode: 1 | 2 | 3, message: string, status?: number) {
    super(message);
    this.exitCode = exitCode;
    this.status = status;
  }
}

/** Returns the error for options that do not fit together. */
export function wrongOptions(message: string): AdminError {
  return new AdminError(EXIT.refused, message);
}
