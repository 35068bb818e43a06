/** A log that cannot be read. The message names the file, the reason, and what is allowed. */
export class LogError extends Error {
  override readonly name = "LogError";
}
