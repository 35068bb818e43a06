import { isDeepStrictEqual } from "node:util";
import type { File } from "@babel/types";
import { type Edit, unchanged } from "./edit.ts";
import { type AppModule, type Place, parseModule, readAppModule } from "./find-app.ts";
import { CONTROL, COUNTER } from "./find-classes.ts";
import type { AppFile } from "./hono-app.ts";

/** The code that an edit adds to a module, apart from its place. */
interface Additions {
  /** The statements after the imports. */
  readonly afterImports: readonly string[];
  /** The statement after the statement that creates the app. */
  readonly afterApp?: string | undefined;
  /** The call after the creation of the app, such as `.use(rateLimit(config))`. */
  readonly call?: string | undefined;
}

type Tree = Readonly<Record<string, unknown>>;

/**
 * Whether a new text of a module is the old text with exactly the added code. A line break or a
 * parenthesis beside an added text can change the meaning of both texts, so the syntax trees decide.
 *
 * @param app the end of the declaration of the app, as an offset in the old text
 */
function isExactly(
  after: string,
  before: { readonly path: string; readonly text: string },
  additions: Additions,
  app: number,
): boolean {
  const oldFile = parseModule(before.path, before.text);
  const newFile = parseModule(before.path, after);
  if (!oldFile || !newFile) return false;
  const { body } = oldFile.program;
  const lastImport = body.findLastIndex(({ type }) => type === "ImportDeclaration");
  const creation = body.findIndex(({ start, end }) => Number(start) <= app && app <= Number(end));
  const expected = body.flatMap((statement, index) => [
    statement,
    ...(index === lastImport ? statementsOf(before.path, additions.afterImports) : []),
    ...(index === creation && additions.afterApp !== undefined
      ? statementsOf(before.path, [additions.afterApp])
      : []),
  ]);
  const { call } = additions;
  const added = treeOf(newFile.program.body);
  const found = call === undefined ? added : withoutCall(added, callOf(before.path, call));
  return isDeepStrictEqual(found, treeOf(expected));
}

function statementsOf(path: string, lines: readonly string[]): File["program"]["body"] {
  return parseModule(path, lines.join("\n"))?.program.body ?? [];
}

/** Returns the trees of a method and of its arguments. */
function callOf(path: string, call: string): { property: unknown; args: unknown } {
  const [statement] = statementsOf(path, [`app${call}`]);
  const { expression } = treeOf(statement) as { expression: Tree };
  return { property: (expression.callee as Tree).property, args: expression.arguments };
}

/** Replaces `new App().use(…)` by `new App()`. */
function withoutCall(tree: unknown, call: { property: unknown; args: unknown }): unknown {
  if (Array.isArray(tree)) return tree.map((each) => withoutCall(each, call));
  if (typeof tree !== "object" || tree === null) return tree;
  const { type, callee, arguments: args } = tree as Tree;
  const { object, property } = (callee ?? {}) as { object?: Tree; property?: unknown };
  const isAdded =
    type === "CallExpression" &&
    object?.type === "NewExpression" &&
    isDeepStrictEqual({ property, args }, { property: call.property, args: call.args });
  if (isAdded) return object;
  return Object.fromEntries(
    Object.entries(tree).map(([name, value]) => [name, withoutCall(value, call)]),
  );
}

/** The fields of a node that depend on its place and its notation. */
const NOTATION = new Set([
  "start",
  "end",
  "loc",
  "extra",
  "leadingComments",
  "trailingComments",
  "innerComments",
]);

/** Returns a copy of a syntax tree without places, comments and notations. */
function treeOf(node: unknown): unknown {
  return JSON.parse(
    // JSON has no regular expressions and no bigints; Babel keeps both as texts.
    JSON.stringify(node, (name, value) => (NOTATION.has(name) ? undefined : value)),
  );
}

/** An inserted text, and its place. */
interface Insertion {
  readonly offset: number;
  readonly text: string;
}

/** An edit of the entry, and the names of Weir's classes in wrangler's configuration. */
interface EntryEdit extends Edit {
  readonly classes: ClassNames;
}

/** The names under which an app exports Weir's classes. */
export interface ClassNames {
  readonly counter: string;
  /** Undefined if the app does not export this class, so that wrangler could not bind it. */
  readonly control: string | undefined;
}

/**
 * Adds the middleware and the export of the Durable Objects' classes to the file of an app. It
 * inserts lines, and changes no other character. The new text is parsed, and is used only if it has
 * exactly the statements of the old text and the added ones.
 *
 * The middleware comes directly after `new Hono()`, so that it runs before all routes. This is safe
 * only if the file creates exactly one app and exports it as the default. For all other files the
 * edit has the lines to add by hand.
 *
 * @param configPath the path for the import of weir.config.ts, such as `../weir.config`
 */
export function editEntry(file: AppFile, configPath: string): EntryEdit {
  const { path, text } = file;
  const module = readAppModule(file);
  const { place, isLimited = false } = module ?? {};
  const counter = module?.counter ?? { name: COUNTER, isExported: false };
  const control = module?.control ?? { name: CONTROL, isExported: false };
  const classes = { counter: counter.name, control: control.name };
  const exported = [
    ...(control.isExported ? [] : [exportedAs(CONTROL, control.name)]),
    ...(counter.isExported ? [] : [exportedAs(COUNTER, counter.name)]),
  ];
  if (isLimited && exported.length === 0) return { ...unchanged(text), classes };
  const needs = { isLimited, exported };
  const edited =
    module && place ? withAdditions(file, configPath, module, place, needs) : undefined;
  if (edited === undefined) {
    const lines = linesByHand(path, configPath, needs);
    if (!isLimited || !counter.isExported) return { ...unchanged(text, [lines]), classes };
    // Weir limits requests already, and lacks only the statistics and the overrides.
    return { ...unchanged(text, [], [lines]), classes: { ...classes, control: undefined } };
  }
  const changes = [
    ...(isLimited ? [] : [`${place?.app}.use(rateLimit(config)): limits all requests of the app`]),
    ...(exported.length === 0 ? [] : [`the export of ${exported.join(" and ")}`]),
  ];
  // weirAdmin makes the app's bundle larger, and not every app has operators.
  const advice = /\bweirAdmin\b/.test(text)
    ? []
    : [
        `${path}: for the dashboard and commands such as weir peek, import weirAdmin from "edge-weir/admin", write ${place?.app ?? "app"}.route("/", weirAdmin(config)) before ${place?.app ?? "app"}.use(rateLimit(config)), and set the secret WEIR_ADMIN_TOKEN`,
      ];
  return { text: edited, changes, byHand: [], advice, classes };
}

/** What the file of an app has and lacks. */
interface Needs {
  readonly isLimited: boolean;
  /** The missing exports, such as `CounterObject` or `CounterObject as WeirCounterObject`. */
  readonly exported: readonly string[];
}

/** Returns the file's new text; undefined if no text has exactly the added statements. */
function withAdditions(
  file: AppFile,
  configPath: string,
  { endOfImports }: AppModule,
  place: Place,
  { isLimited, exported }: Needs,
): string | undefined {
  const { text } = file;
  const { eol, quote, hasSemicolons } = styleOf(text, endOfImports);
  const config = /\bconfig\b/.test(text) ? "weirConfig" : "config";
  const middleware = /\brateLimit\b/.test(text) ? "weirRateLimit" : "rateLimit";
  const imported = middleware === "rateLimit" ? middleware : `rateLimit as ${middleware}`;
  const imports = isLimited
    ? []
    : [
        `import { ${imported} } from ${quote("edge-weir")}`,
        `import ${config} from ${quote(configPath)}`,
      ];
  const exports =
    exported.length === 0 ? [] : [`export { ${exported.join(", ")} } from ${quote("edge-weir")}`];
  const call = isLimited ? undefined : `.use(${middleware}(${config}))`;
  const isChain = place.kind === "chain";
  const afterApp = call === undefined || isChain ? undefined : place.app + call;
  const additions: Additions = {
    afterImports: [...imports, ...exports],
    afterApp,
    call: isChain ? call : undefined,
  };
  // Without a semicolon, the next token could continue the added statement.
  for (const end of hasSemicolons ? [";"] : ["", ";"]) {
    const insertions: Insertion[] = [
      {
        offset: endOfLine(text, endOfImports),
        text: [
          ...imports.map((line) => eol + line + end),
          ...exports.map((line) => eol + eol + line + end),
        ].join(""),
      },
    ];
    if (afterApp !== undefined) {
      insertions.push({ offset: endOfLine(text, place.offset), text: eol + eol + afterApp + end });
    } else if (call !== undefined) {
      insertions.push({ offset: place.offset, text: (place.isBare ? "()" : "") + call });
    }
    const edited = insert(text, insertions);
    if (isExactly(edited, file, additions, place.offset)) return edited;
  }
  return undefined;
}

/** Returns the export of one of Weir's classes under a name. */
function exportedAs(className: string, name: string): string {
  return className === name ? className : `${className} as ${name}`;
}

/** Returns the end of the line if only a comment follows the offset; otherwise the offset. */
function endOfLine(text: string, offset: number): number {
  const [comment = ""] = /^[ \t]*\/\/[^\r\n]*/.exec(text.slice(offset)) ?? [];
  return offset + comment.length;
}

/** Reads the file's quotes, semicolons and line ends from its imports. */
function styleOf(text: string, endOfImports: number) {
  const quote = text.slice(0, endOfImports).includes("'") ? "'" : '"';
  return {
    eol: text.includes("\r\n") ? "\r\n" : "\n",
    quote: (value: string) => `${quote}${value}${quote}`,
    hasSemicolons: text[endOfImports - 1] === ";",
  };
}

function insert(text: string, insertions: readonly Insertion[]): string {
  const lastFirst = [...insertions].sort((one, other) => other.offset - one.offset);
  return lastFirst.reduce(
    (edited, { offset, text: added }) => edited.slice(0, offset) + added + edited.slice(offset),
    text,
  );
}

function linesByHand(path: string, configPath: string, { isLimited, exported }: Needs): string {
  const lines = [
    ...(isLimited
      ? []
      : [
          'import { rateLimit } from "edge-weir";',
          `import config from "${configPath}";`,
          "app.use(rateLimit(config)); // directly after new Hono(), before all routes",
        ]),
    ...(exported.length === 0
      ? []
      : [`export { ${exported.join(", ")} } from "edge-weir"; // in the file of "main"`]),
  ];
  return `${path}: the starter cannot edit this file safely, so add these lines yourself:\n${lines.join("\n")}`;
}
