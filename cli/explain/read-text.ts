import { createReadStream } from "node:fs";
import { wrongOptions } from "../admin/admin-error.ts";
import { printable } from "../doctor/finding.ts";

/** The maximum size of a file, in bytes. */
const MAX_BYTES = 128 * 1024 * 1024;

/**
 * Reads a file.
 *
 * @param file a path, or `-` for the standard input
 * @param content describes the content, for messages
 * @throws {AdminError} if it cannot be read or is too large
 */
export async function readText(file: string, content: string): Promise<string> {
  const isStandardInput = file === "-";
  if (isStandardInput && process.stdin.isTTY) {
    process.stderr.write(
      `Paste the ${content}, then press Ctrl-D (on Windows Ctrl-Z and Enter).\n`,
    );
  }
  const name = isStandardInput ? "the standard input" : printable(file).slice(0, 200);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of isStandardInput ? process.stdin : createReadStream(file)) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_BYTES) break;
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw wrongOptions(
      code === "ENOENT"
        ? `There is no file ${name}.`
        : `${name} could not be read${code === undefined ? "" : ` (${code})`}.`,
    );
  }
  if (bytes > MAX_BYTES) {
    throw wrongOptions(
      `${name} has more than ${MAX_BYTES / 1024 / 1024} MiB. Copy only the one request into a file.`,
    );
  }
  return Buffer.concat(chunks).toString("utf8");
}
