/** A command that cannot be carried out. The message names the reason and the cure, and contains no secret. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  /** 1 for a wrong option and for a refusal by a Worker; usually 2 for other failures. */
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}
