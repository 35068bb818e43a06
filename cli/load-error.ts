/** What to do about an error whose own message does not say so, by its code in Node. */
const ADVICE: Readonly<Record<string, string>> = {
  ERR_MODULE_NOT_FOUND:
    "Run npm install, or correct the import; a relative one ends in its file's extension, as in ./rules.ts.",
  ERR_UNSUPPORTED_DIR_IMPORT: "Name the file in the import, as in ./rules/index.ts.",
  ERR_UNSUPPORTED_ESM_URL_SCHEME:
    "Rules are plain data: import packages and files, and nothing that only workerd has.",
  ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX: "Types are removed, not compiled: write plain objects.",
};

/**
 * Says why a module or a JSON document could not be loaded, where in it that is as far as Node
 * tells, and what to do.
 *
 * @param error whatever was thrown by reading or running the file
 * @param file the file's path, as it was given
 */
export function explainLoadError(error: unknown, file: string): string {
  if (!(error instanceof Error)) return `It throws ${String(error)}.`;
  const trace = traceOf(error);
  const advice = "code" in error ? ADVICE[String(error.code)] : undefined;
  return [trace, advice ?? howToLocate(trace, file)].filter(Boolean).join("\n");
}

/**
 * The stack, with the lines of source that Node may put above it, down to the frames of whoever
 * loaded the file: they would hide the one line that matters.
 */
function traceOf({ name, message, stack = `${name}: ${message}` }: Error): string {
  const lines = stack.split("\n");
  const end = lines.findIndex((line) => /^ {4}at /.test(line) && !line.includes("file://"));
  return lines.slice(0, end === -1 ? undefined : end).join("\n");
}

/** A syntax error in a module of plain JavaScript comes without its place. */
function howToLocate(trace: string, file: string): string | undefined {
  if (!trace.startsWith("SyntaxError") || file.endsWith(".json")) return undefined;
  return `To see where: node --check ${file} (or a file that it imports).`;
}
