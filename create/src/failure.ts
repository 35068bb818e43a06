/**
 * A failure whose message names the fault and the remedy. The command prints only the message, without
 * a stack.
 */
export class Failure extends Error {
  override readonly name = "Failure";
}
