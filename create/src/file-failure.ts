import { Failure } from "./failure.ts";

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

/** Whether an error comes from the file system. */
export function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "code" in error;
}

/**
 * Turns an error of the file system into a failure with one line.
 *
 * @param outcome the state of the user's files, such as `Nothing was written.`
 * @returns all other errors without a change
 */
export function fileFailure(error: unknown, outcome: string): unknown {
  if (!isFileError(error)) return error;
  const { code = "", path, message } = error;
  const meaning = MEANINGS[code];
  const place = path === undefined ? "A file" : path;
  return new Failure(
    meaning === undefined
      ? `${message}. ${outcome}`
      : `${place} cannot be read or written: ${meaning} (${code}). ${outcome}`,
  );
}
