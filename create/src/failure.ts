/** A failure whose message names the fault and the remedy. The command prints only the message, without a stack. */
export class Failure extends Error {
  override readonly name = "Failure";
}

/** The meanings of the usual errors of the file system. */
const MEANINGS: Readonly<Record<string, string>> = {
  EACCES: "this user has no permission",
  EPERM: "this user has no permission",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  ENAMETOOLONG: "the name is too long",
  ENOTDIR: "a part of the path is a file",
  EEXIST: "a file, or a link without a target, has this name",
  ENOENT: "a part of the path does not exist, or is a link without a target",
  ELOOP: "the links form a circle",
};

/**
 * Turns an error of the file system into a failure with one line.
 *
 * @param outcome the state of the user's files, such as `Nothing was written.`
 * @returns all other errors without a change
 */
export function fileFailure(error: unknown, outcome: string): unknown {
  if (!(error instanceof Error && "syscall" in error && "code" in error)) return error;
  const { code = "", path = "A file", message } = error as NodeJS.ErrnoException;
  const meaning = MEANINGS[code];
  const fault = meaning && `${path} cannot be read or written: ${meaning} (${code})`;
  return new Failure(`${fault ?? message}. ${outcome}`);
}
