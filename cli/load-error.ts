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
 * Parses JSON. Where that fails, the error names the line in place of V8's excerpt of the text: there
 * may be a secret in it.
 *
 * @throws {SyntaxError}
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
    // Without frames: those of this file say nothing about the one that was read.
    located.stack = String(located);
    throw located;
  }
}

/**
 * The stack down to the frames of whoever loaded the file, which would hide the one line that matters.
 * Of what Node puts above the message, the place is kept and the lines of source are not: there may be
 * a secret in them.
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

/** A syntax error in a module of plain JavaScript comes without its place. */
function howToLocate(trace: string, file: string): string | undefined {
  if (!trace.startsWith("SyntaxError") || file.endsWith(".json")) return undefined;
  return `To see where: node --check ${file} (or a file that it imports).`;
}
