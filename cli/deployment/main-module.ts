import { readFile } from "node:fs/promises";
import { extname, relative, resolve } from "node:path";

/** Facts about the Worker's main module, as far as its text shows them. */
export interface MainModule {
  /** The path of the module; undefined if `main` is not set in wrangler's configuration. */
  readonly path: string | undefined;
  /** The text of the module; undefined if there is no such file. */
  readonly text: string | undefined;
  /**
   * The kind of the module: a source file, JavaScript (which a build may create later), or something
   * else, such as a package or a module of Vite.
   */
  readonly kind: "source" | "javascript" | "other";
  /** Whether the default export is certainly Weir in front of an origin. */
  readonly forwards: boolean;
  /** Whether Weir may forward requests to an origin, as far as the text shows. */
  readonly mayForward: boolean;
}

/**
 * Reads the main module of a Worker. It does not run or bundle the module, because that takes
 * longer than all other checks.
 *
 * @param folder the folder of wrangler's configuration, from which wrangler resolves the path
 */
export async function readMainModule(
  folder: string,
  path: string | undefined,
): Promise<MainModule> {
  const file = path === undefined ? undefined : resolve(folder, path);
  const source = file && (await readFile(file, "utf8").catch(() => undefined));
  const text = source && withoutComments(source);
  return {
    path: path && relative(folder, resolve(folder, path)),
    text,
    kind: kindOf(path),
    forwards: text !== undefined && /\bexport\s+default\s+weir\s*\(/.test(text),
    mayForward: text === undefined || mayForward(text),
  };
}

/**
 * If the text does not call `weir`, another module may call it, unless the text uses Weir in a
 * different way.
 */
function mayForward(text: string): boolean {
  return /\bweir\s*\(/.test(text) || !/\b(rateLimit|WeirService)\b/.test(text);
}

function kindOf(path = ""): MainModule["kind"] {
  if (/^\.[mc]?tsx?$/.test(extname(path))) return "source";
  return /^\.[mc]?jsx?$/.test(extname(path)) ? "javascript" : "other";
}

/**
 * Whether a module exports a class. The result is also true if the text does not show it, as with
 * `export * from "…"`, and if there is no text.
 */
export function mayExport({ text }: MainModule, className: string): boolean {
  if (text === undefined) return true;
  if (/\bexport\s*\*\s*from\b|\bmodule\.exports\b/.test(text)) return true;
  const name = className.replaceAll("$", "\\$");
  const lists = [...text.matchAll(/\bexport\s*\{([^}]*)\}/g)].map(([, list]) => list ?? "");
  const named = new RegExp(`(^|,|\\bas\\s)\\s*${name}\\s*(,|$)`);
  const declared = new RegExp(`\\bexport\\s+(abstract\\s+)?(class|const|let|var)\\s+${name}\\b`);
  return declared.test(text) || lists.some((list) => named.test(list));
}

/** Removes comments. A comment-like part of a text literal may be lost too, which does no harm. */
function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\/|(^|[^:"'`])\/\/.*$/gm, "$1");
}
