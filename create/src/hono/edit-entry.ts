import { type Edit, unchanged } from "./edit.ts";
import { readAppModule } from "./find-app.ts";
import type { AppFile } from "./hono-app.ts";

/** An inserted text, and its place. */
interface Insertion {
  readonly offset: number;
  readonly text: string;
}

/**
 * Adds the middleware and the export of the Durable Objects' class to the file of an app. It
 * inserts lines, and changes no other character.
 *
 * The middleware comes directly after `new Hono()`, so that it runs before all routes. This is safe
 * only if the file creates exactly one app and exports it as the default. For all other files the
 * edit has the lines to add by hand.
 *
 * @param configPath the path for the import of weir.config.ts, such as `../weir.config`
 */
export function editEntry({ path, text }: AppFile, configPath: string): Edit {
  const module = readAppModule({ path, text });
  const { place, isLimited = false, isExported = false, endOfImports = 0 } = module ?? {};
  if (isLimited && isExported) return unchanged(text);
  if (!place) return unchanged(text, [linesByHand(path, configPath, { isLimited, isExported })]);
  const style = styleOf(text, endOfImports);
  const config = /\bconfig\b/.test(text) ? "weirConfig" : "config";
  const middleware = /\brateLimit\b/.test(text) ? "weirRateLimit" : "rateLimit";
  const insertions: Insertion[] = [];
  const changes: string[] = [];
  const lines: string[] = [];
  if (!isLimited) {
    const imported = middleware === "rateLimit" ? middleware : `rateLimit as ${middleware}`;
    lines.push(style.line(`import { ${imported} } from ${style.quote("edge-weir")}`));
    lines.push(style.line(`import ${config} from ${style.quote(configPath)}`));
    const call = `.use(${middleware}(${config}))`;
    insertions.push(
      place.kind === "chain"
        ? { offset: place.offset, text: call }
        : {
            offset: endOfLine(text, place.offset),
            text: style.eol + style.eol + style.line(place.app + call),
          },
    );
    changes.push(`${place.app}.use(rateLimit(config)): limits all requests of the app`);
  }
  if (!isExported) {
    lines.push("", style.line(`export { CounterObject } from ${style.quote("edge-weir")}`));
    changes.push("the export of the class CounterObject");
  }
  const imports = lines.map((line) => style.eol + line).join("");
  insertions.push({ offset: endOfLine(text, endOfImports), text: imports });
  return { text: insert(text, insertions), changes, byHand: [] };
}

/** Returns the end of the line if only a comment follows the offset; otherwise the offset. */
function endOfLine(text: string, offset: number): number {
  const [comment = ""] = /^[ \t]*\/\/[^\r\n]*/.exec(text.slice(offset)) ?? [];
  return offset + comment.length;
}

/** Reads the file's quotes, semicolons and line ends from its imports. */
function styleOf(text: string, endOfImports: number) {
  const quote = text.slice(0, endOfImports).includes("'") ? "'" : '"';
  const hasSemicolons = text[endOfImports - 1] === ";";
  return {
    eol: text.includes("\r\n") ? "\r\n" : "\n",
    quote: (value: string) => `${quote}${value}${quote}`,
    line: (code: string) => (hasSemicolons ? `${code};` : code),
  };
}

function insert(text: string, insertions: readonly Insertion[]): string {
  const lastFirst = [...insertions].sort((one, other) => other.offset - one.offset);
  return lastFirst.reduce(
    (edited, { offset, text: added }) => edited.slice(0, offset) + added + edited.slice(offset),
    text,
  );
}

function linesByHand(
  path: string,
  configPath: string,
  { isLimited, isExported }: { readonly isLimited: boolean; readonly isExported: boolean },
): string {
  const lines = [
    ...(isLimited
      ? []
      : [
          'import { rateLimit } from "edge-weir";',
          `import config from "${configPath}";`,
          "app.use(rateLimit(config)); // directly after new Hono(), before all routes",
        ]),
    ...(isExported ? [] : ['export { CounterObject } from "edge-weir"; // in the file of "main"']),
  ];
  return `${path}: the file does not create one app and export it, so add these lines yourself:\n${lines.join("\n")}`;
}
