import { dirname, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { jsonText, printableLines } from "./print/text.ts";

/** A kind of error, and the remedy that its own message does not name. */
interface Advice {
  /** Matches the message. */
  readonly pattern: RegExp;
  readonly remedy: string;
}

/** The first entry that matches an error applies. */
const ADVICE: readonly Advice[] = [
  {
    pattern: /\bdefault\)? is not a function$/,
    remedy: 'Write braces around the name, as in: import { defineConfig } from "edge-weir/config";',
  },
  {
    pattern: /Cannot find (module|package) 'cloudflare:/,
    remedy: "This module exists only in a Worker. Import it in the Worker's own file.",
  },
  {
    pattern: /\(line \d+, column \d+\)$/,
    remedy:
      "JSON has no comments, and no comma after the last element. If you want them, write a .ts file.",
  },
  {
    pattern: /Cannot find (module|package)/,
    remedy: "Run npm install, or correct the name or the path of the import.",
  },
];

/** The folder of the commands' own code. Stack frames in it do not help the author of a configuration. */
const OWN_FOLDER = dirname(fileURLToPath(import.meta.url)) + sep;

/**
 * Explains why a module or a JSON document could not be loaded. The text has the error, its file
 * and line if they are known, and a remedy if there is one. It never quotes a line of the file,
 * because that line may contain a secret.
 *
 * @param error the value that reading or running the file threw
 */
export function explainLoadError(error: unknown): string {
  if (!(error instanceof Error)) return `The file throws ${String(error)}.`;
  const advice = ADVICE.find(({ pattern }) => pattern.test(error.message));
  return [headlineOf(error), ...framesOf(error), advice?.remedy].filter(Boolean).join("\n");
}

/**
 * Parses JSON. V8's error message quotes the text, which may contain a secret. The error of this
 * function names the line and the column instead.
 *
 * @param isJsonc whether comments, and commas after last elements, are allowed
 * @throws {SyntaxError} if the text is not JSON
 */
export async function parseJson(text: string, isJsonc = false): Promise<unknown> {
  const { parse, printParseErrorCode } = await import("jsonc-parser");
  const errors: import("jsonc-parser").ParseError[] = [];
  const source = text.replace(/^\uFEFF/, "").trimEnd();
  const options = { allowTrailingComma: isJsonc, disallowComments: !isJsonc };
  const value: unknown = parse(source, errors, options);
  const [first] = errors;
  // Only JSON.parse reads the name __proto__ as a plain field.
  if (first === undefined) return isJsonc ? value : JSON.parse(source);
  const before = source.slice(0, first.offset).split("\n");
  // The code of an error becomes words: CommaExpected becomes "comma expected".
  const reason = printParseErrorCode(first.error)
    .replace(/(?<=.)(?=[A-Z])/g, " ")
    .toLowerCase();
  const column = (before.at(-1) ?? "").length + 1;
  throw new SyntaxError(`${reason} (line ${before.length}, column ${column})`);
}

/** Returns the error's name and message, with the names of the file, not of the compiled code. */
function headlineOf({ name, message }: Error): string {
  // The loader reports `ParseError: <reason>`, followed by a line with the place.
  const [, reason, place] = /^(?:\w+: )?ParseError: (.*?) *\n *(\S+:\d+):\d+$/s.exec(message) ?? [];
  if (reason !== undefined) return `SyntaxError: ${reason}\n    at ${place}`;
  return `${name}: ${message.replace(/\(0 ?, _\w+\.(\w+)\)/g, "$1")}`;
}

/**
 * Returns the lines of the stack that belong to the file and its imports. They have no columns, because the loader
 * keeps only line numbers.
 */
function framesOf({ message, stack = "" }: Error): string[] {
  return stack
    .replace(message, "")
    .split("\n")
    .filter((line) => /^ {4}at /.test(line) && isOfUser(line))
    .map((line) => line.replace(/:(\d+):\d+(\)?)$/, ":$1$2"));
}

function isOfUser(frame: string): boolean {
  if (frame.includes(OWN_FOLDER) || /[\\/]node_modules[\\/](jiti|commander)[\\/]/.test(frame)) {
    return false;
  }
  return /[\\/].*:\d+:\d+\)?$/.test(frame) && !/\bnode:|\bdata:/.test(frame);
}

/** Returns the report for a terminal about a file that could not be loaded. */
export function textError(file: string, error: string): string {
  return printableLines(`${file} could not be loaded.\n${error}`);
}

/** Returns the JSON of `--json` about a file that could not be loaded. */
export function jsonError(file: string, error: string): string {
  return jsonText({ ok: false, config: file, error });
}
