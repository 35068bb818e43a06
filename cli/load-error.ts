/**
 * Remedies for the errors of Node whose messages name no remedy. The keys are the codes of the
 * errors.
 */
const ADVICE: Readonly<Record<string, string>> = {
  ERR_MODULE_NOT_FOUND:
    "Run npm install, or correct the import; a relative import ends in its file's extension, as in ./rules.ts.",
  ERR_UNSUPPORTED_DIR_IMPORT: "Name the file in the import, as in ./rules/index.ts.",
  ERR_UNSUPPORTED_ESM_URL_SCHEME:
    "Rules are plain data: import only packages and files, and no module that exists only in workerd.",
  ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX:
    "Node removes types but does not compile TypeScript: write plain objects.",
};

/**
 * Explains why a module or a JSON document could not be loaded. The text has the error, its file
 * and line if Node reports them, and a remedy if there is one.
 *
 * @param error the value that reading or running the file threw
 * @param file the path of the file, as given on the command line
 */
export function explainLoadError(error: unknown, file: string): string {
  if (!(error instanceof Error)) return `The file throws ${String(error)}.`;
  const trace = traceOf(error);
  const advice = "code" in error ? ADVICE[String(error.code)] : undefined;
  return [trace, advice ?? howToLocate(trace, file)].filter(Boolean).join("\n");
}

/**
 * Parses JSON. V8's error message quotes the text, which may contain a secret. The error of this
 * function names the line instead.
 *
 * @throws {SyntaxError} if the text is not JSON
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const [excerpted, excerpt] =
      /, (?:\.\.\.)?"(.*?)"(?:\.\.\.)?(?= is not valid JSON$)/s.exec((error as Error).message) ??
      [];
    if (excerpted === undefined || excerpt === undefined) throw error;
    const line = text.slice(0, text.indexOf(excerpt) + excerpt.length / 2).split("\n").length;
    const message = (error as Error).message.replace(excerpted, () => "");
    const located = new SyntaxError(`${message} (line ${line})`);
    // The stack has no frames, because they would point at this file, not at the file with the
    // fault.
    located.stack = String(located);
    throw located;
  }
}

/**
 * Returns the stack without the frames of Node's loader, which would hide the important line. Above
 * the message, Node prints the file and line of the error, and some source code. This function
 * keeps the file and line, and removes the source code, because it may contain a secret.
 */
function traceOf({ name, message, stack = `${name}: ${message}` }: Error): string {
  const lines = stack.split("\n");
  const end = lines.findIndex((line) => /^ {4}at /.test(line) && !line.includes("file://"));
  const shown = lines.slice(0, end === -1 ? undefined : end);
  const begin = shown.findLastIndex((line) => line.startsWith(name));
  const place = shown
    .slice(0, Math.max(0, begin))
    .filter((line) => /^(file:\/\/|\/|[A-Z]:).*:\d+$/.test(line));
  return [...place, ...shown.slice(Math.max(0, begin))].join("\n");
}

/**
 * Returns advice for a syntax error in a JavaScript module. Node reports no line for such an error.
 */
function howToLocate(trace: string, file: string): string | undefined {
  if (!trace.startsWith("SyntaxError") || file.endsWith(".json")) return undefined;
  return `To find the line, run node --check ${file} (or a file that it imports).`;
}
