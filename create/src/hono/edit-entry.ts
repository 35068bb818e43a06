import { parse } from "@babel/parser";
import type { Expression, File, Statement } from "@babel/types";
import { type Edit, unchanged } from "./edit.ts";
import type { AppFile } from "./hono-app.ts";

/** An inserted text, and its place. */
interface Insertion {
  readonly offset: number;
  readonly text: string;
}

/** Where to add the middleware. */
interface Place {
  readonly kind: "statement" | "chain";
  readonly offset: number;
  /** The name of the app's variable. */
  readonly app: string;
}

/** The classes of apps, and the packages that export them. */
const APP_CLASSES: Readonly<Record<string, RegExp>> = {
  Hono: /^hono(\/(quick|tiny))?$/,
  OpenAPIHono: /^@hono\/zod-openapi$/,
};

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
  const isLimited = /from\s*["']edge-weir["']/.test(text) && /\brateLimit\b/.test(text);
  const isExported = /\bCounterObject\b/.test(text);
  if (isLimited && isExported) return unchanged(text);
  const file = parseModule(path, text);
  const place = file ? findPlace(file.program.body) : undefined;
  if (!file || !place)
    return unchanged(text, [linesByHand(path, configPath, isLimited, isExported)]);

  const style = styleOf(text, file.program.body);
  const config = /\bconfig\b/.test(text) ? "weirConfig" : "config";
  const middleware = /\brateLimit\b/.test(text) ? "weirRateLimit" : "rateLimit";
  const imported = middleware === "rateLimit" ? middleware : `rateLimit as ${middleware}`;
  const lines = isLimited
    ? []
    : [
        `import { ${imported} } from ${style.quote("edge-weir")}`,
        `import ${config} from ${style.quote(configPath)}`,
      ];
  const exported = [`export { CounterObject } from ${style.quote("edge-weir")}`];
  const afterImports = [
    ...lines.map(style.line),
    ...(isExported ? [] : ["", ...exported.map(style.line)]),
  ];
  const insertions: Insertion[] = [
    {
      offset: endOfLine(text, endOfImports(file.program.body)),
      text: afterImports.map((line) => style.eol + line).join(""),
    },
  ];
  if (!isLimited) {
    const call = `.use(${middleware}(${config}))`;
    const statement = `${style.eol}${style.eol}${style.line(`${place.app}${call}`)}`;
    insertions.push(
      place.kind === "chain"
        ? { offset: place.offset, text: call }
        : { offset: endOfLine(text, place.offset), text: statement },
    );
  }
  const changes = [
    ...(isLimited ? [] : [`${place.app}.use(rateLimit(config)): limits all requests of the app`]),
    ...(isExported ? [] : ["the export of the class CounterObject"]),
  ];
  return { text: insert(text, insertions), changes, byHand: [] };
}

/** Returns the parsed module; undefined if the parser does not understand it. */
function parseModule(path: string, text: string): File | undefined {
  const plugins = [
    ...(/\.[cm]?tsx?$/.test(path) ? (["typescript"] as const) : []),
    ...(path.endsWith("x") ? (["jsx"] as const) : []),
    "decorators" as const,
  ];
  try {
    return parse(text, { sourceType: "module", plugins });
  } catch {
    return undefined;
  }
}

/** Returns the place of the middleware; undefined if the file does not fit. */
function findPlace(body: readonly Statement[]): Place | undefined {
  const classes = appClasses(body);
  const places = body.flatMap((statement): Place[] => {
    const declaration =
      statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declaration?.type !== "VariableDeclaration" || declaration.declarations.length !== 1)
      return [];
    const [{ id, init } = {}] = declaration.declarations;
    if (id?.type !== "Identifier" || !init) return [];
    const created = creationIn(init, classes);
    if (!created?.end || !statement.end) return [];
    return init === created
      ? [{ kind: "statement", offset: statement.end, app: id.name }]
      : [{ kind: "chain", offset: created.end, app: id.name }];
  });
  const [place] = places;
  return places.length === 1 && place && isDefaultExport(body, place.app) ? place : undefined;
}

/** Returns the names under which the file imports the classes of apps. */
function appClasses(body: readonly Statement[]): Set<string> {
  const names = new Set<string>();
  for (const statement of body) {
    if (statement.type !== "ImportDeclaration") continue;
    for (const specifier of statement.specifiers) {
      if (specifier.type !== "ImportSpecifier" || specifier.imported.type !== "Identifier")
        continue;
      if (APP_CLASSES[specifier.imported.name]?.test(statement.source.value)) {
        names.add(specifier.local.name);
      }
    }
  }
  return names;
}

/** Returns the expression `new Hono()` at the start of a chain of calls. */
function creationIn(expression: Expression, classes: ReadonlySet<string>): Expression | undefined {
  if (expression.type === "NewExpression") {
    const { callee } = expression;
    return callee.type === "Identifier" && classes.has(callee.name) ? expression : undefined;
  }
  if (expression.type !== "CallExpression" || expression.callee.type !== "MemberExpression") {
    return undefined;
  }
  const { object } = expression.callee;
  return object.type === "Super" ? undefined : creationIn(object, classes);
}

/** Whether the module exports the app as the default, alone or as the handler `fetch`. */
function isDefaultExport(body: readonly Statement[], app: string): boolean {
  return body.some((statement) => {
    if (statement.type !== "ExportDefaultDeclaration") return false;
    const { declaration } = statement;
    return refersTo(declaration, app);
  });
}

function refersTo(node: { type: string }, app: string): boolean {
  // `export default app`, `{ fetch: app.fetch }`, `{ fetch: app.fetch } satisfies ExportedHandler`
  const record = node as unknown as Record<string, unknown>;
  switch (node.type) {
    case "Identifier":
      return record.name === app;
    case "TSSatisfiesExpression":
    case "TSAsExpression":
      return refersTo(record.expression as { type: string }, app);
    case "MemberExpression":
      return refersTo(record.object as { type: string }, app);
    case "ObjectExpression":
      return (record.properties as { type: string; value?: { type: string } }[]).some(
        ({ type, value }) =>
          type === "ObjectProperty" && value !== undefined && refersTo(value, app),
      );
    default:
      return false;
  }
}

/** Returns the end of the last import. The file has one, because it imports the app's class. */
function endOfImports(body: readonly Statement[]): number {
  const last = body.findLast(({ type }) => type === "ImportDeclaration");
  return last?.end ?? 0;
}

/** Returns the end of the line if only a comment follows the offset; otherwise the offset. */
function endOfLine(text: string, offset: number): number {
  const [comment = ""] = /^[ \t]*\/\/[^\r\n]*/.exec(text.slice(offset)) ?? [];
  return offset + comment.length;
}

/** Reads the file's quotes, semicolons and line ends from its imports. */
function styleOf(text: string, body: readonly Statement[]) {
  const end = endOfImports(body);
  const quote = text.slice(0, end).includes("'") ? "'" : '"';
  const hasSemicolons = text[end - 1] === ";";
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

function linesByHand(path: string, configPath: string, isLimited: boolean, isExported: boolean) {
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
