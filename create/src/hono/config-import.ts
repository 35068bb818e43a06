import { dirname, join, relative } from "node:path";
import { type HonoApp, parseJson, readText } from "./hono-app.ts";

/** The settings of tsconfig.json on which the extension of an import depends. */
interface Modules {
  readonly module?: string;
  readonly moduleResolution?: string;
}

/**
 * The maximum number of files that extend each other. It bounds the search if files form a circle.
 */
const MAX_FILES = 10;

/**
 * Returns the path by which the entry imports weir.config.ts. The extension depends on the app's
 * own imports and on tsconfig.json.
 */
export async function configImport({ folder, entry }: HonoApp): Promise<string> {
  const path = relative(dirname(entry.path), "weir.config").replaceAll("\\", "/");
  const prefixed = path.startsWith(".") ? path : `./${path}`;
  const [, own] = /from\s*["']\.{1,2}\/[^"']*(\.[jt]s)x?["']/.exec(entry.text) ?? [];
  if (own !== undefined) return prefixed + own;
  if (!/\.[cm]?tsx?$/.test(entry.path)) return `${prefixed}.ts`;
  const { module = "", moduleResolution = module } = await readModules(folder, "tsconfig.json");
  return /^node(16|18|20|next)$/i.test(moduleResolution) ? `${prefixed}.js` : prefixed;
}

/** Reads a tsconfig.json and the files that it extends, if they are files of the app. */
async function readModules(folder: string, first: string): Promise<Modules> {
  const paths = [first];
  let found: Modules = {};
  for (let count = 0; count < MAX_FILES; count++) {
    const path = paths.shift();
    if (path === undefined) break;
    const file = (await readText(folder, path)) ?? (await readText(folder, `${path}.json`));
    const { compilerOptions = {}, bases } = parseConfig(file?.text);
    // The first file that has an option decides.
    found = { ...compilerOptions, ...found };
    // The last base overrides the others. The bases of a file come before other bases of its owner.
    const own = bases.filter((each) => each.startsWith(".")).reverse();
    paths.unshift(...own.map((each) => join(dirname(path), each)));
  }
  return found;
}

function parseConfig(text: string | undefined): {
  compilerOptions?: Modules;
  bases: readonly string[];
} {
  try {
    const config = parseJson(text ?? "{}") as {
      compilerOptions?: Modules;
      extends?: string | string[];
    };
    const { compilerOptions = {}, extends: bases = [] } = config;
    return { compilerOptions, bases: [bases].flat() };
  } catch {
    // The compiler reports a faulty file.
    return { bases: [] };
  }
}
