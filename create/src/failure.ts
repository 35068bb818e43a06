/**
 * A failure whose message is complete: it says what is wrong and how to correct it. The command
 * prints only the message, without a stack.
 */
export class Failure extends Error {
  override readonly name = "Failure";
}
