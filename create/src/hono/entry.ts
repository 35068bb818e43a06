import type { Expression, ImportDeclaration, Statement } from "@babel/types";
import { generateCode, parseModule } from "magicast";
import type { AppFile } from "./hono-app.ts";

/** The result of adding something to a file. */
export interface Edit {
  /** The file's new text. It equals the old text if the file already has everything. */
  readonly text: string;
  /** One line for each change, for the report. */
  readonly changes: readonly string[];
  /**
   * The steps without which Weir does not limit requests, and which the starter could not take safely. Each has the
   * lines to add by hand.
   */
  readonly byHand: readonly string[];
  /** Useful steps that Weir does not need to limit requests. */
  readonly advice: readonly string[];
}

/** Returns an edit that changes nothing. */
export function unchanged(
  text: string,
  byHand: readonly string[] = [],
  advice: readonly string[] = [],
): Edit {
  return { text, changes: [], byHand, advice };
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
 * Adds the middleware and the export of the Durable Objects' classes to the file of an app, and changes
 * no other code.
 *
 * The middleware comes directly after `new Hono()`, so that it runs before all routes. This is safe
 * only if the file creates exactly one app and exports it as the default. For all other files the
 * edit has the lines to add by hand.
 *
 * @param configPath the path for the import of weir.config.ts, such as `../weir.config`
 */
export function editEntry(file: AppFile, configPath: string): EntryEdit {
  const { path, text } = file;
  const body = parseStatements(text);
  const isLimited = body?.some(importsMiddleware) ?? false;
  const counter = readClass(body ?? [], COUNTER, isLimited);
  const control = readClass(body ?? [], CONTROL, isLimited);
  const classes = { counter: counter.name, control: control.name };
  const exported = [
    ...(control.isExported ? [] : [exportedAs(CONTROL, control.name)]),
    ...(counter.isExported ? [] : [exportedAs(COUNTER, counter.name)]),
  ];
  if (isLimited && exported.length === 0) return { ...unchanged(text), classes };
  const needs = { isLimited, exported };
  const app = body && findApp(body);
  if (!app) {
    const lines = linesByHand(path, configPath, needs);
    if (!isLimited || !counter.isExported) return { ...unchanged(text, [lines]), classes };
    // Weir limits requests already, and lacks only the statistics and the overrides.
    return { ...unchanged(text, [], [lines]), classes: { ...classes, control: undefined } };
  }
  const changes = [
    ...(isLimited ? [] : [`${app.name}.use(rateLimit(config)): limits all requests of the app`]),
    ...(exported.length === 0 ? [] : [`the export of ${exported.join(" and ")}`]),
  ];
  // weirAdmin makes the app's bundle larger, and not every app has operators.
  const advice = /\bweirAdmin\b/.test(text)
    ? []
    : [
        `${path}: for the dashboard and commands such as weir peek, import weirAdmin from "edge-weir/admin", write ${app.name}.route("/", weirAdmin(config)) before ${app.name}.use(rateLimit(config)), and set the secret WEIR_ADMIN_TOKEN`,
      ];
  return { text: withWeir(text, configPath, needs), changes, byHand: [], advice, classes };
}

/** The parts of Weir that an app's file has and lacks. */
interface Needs {
  readonly isLimited: boolean;
  /** The missing exports, such as `CounterObject` or `CounterObject as WeirCounterObject`. */
  readonly exported: readonly string[];
}

/** Returns the text of an app's file with the missing parts, in the file's quotes and line ends. */
function withWeir(text: string, configPath: string, { isLimited, exported }: Needs): string {
  const module = parseModule(text.replaceAll("\r\n", "\n"));
  const { body } = module.$ast as { body: Statement[] };
  const quote = /^import [^"]*'/m.test(text) ? "'" : '"';
  const config = /\bconfig\b/.test(text) ? "weirConfig" : "config";
  const middleware = /\brateLimit\b/.test(text) ? "weirRateLimit" : "rateLimit";
  const package_ = `${quote}edge-weir${quote}`;
  const lines: string[] = [];
  if (!isLimited) {
    lines.push(
      `import { ${exportedAs("rateLimit", middleware)} } from ${package_};`,
      `import ${config} from ${quote}${configPath}${quote};`,
    );
    addMiddleware(body, `use(${middleware}(${config}))`);
  }
  if (exported.length > 0) lines.push(`export { ${exported.join(", ")} } from ${package_};`);
  const lastImport = body.findLastIndex(({ type }) => type === "ImportDeclaration");
  body.splice(lastImport + 1, 0, ...statementsOf(lines.join("\n")));
  const [end = ""] = /\s*$/.exec(text) ?? [];
  const code = generateCode(module).code.trimEnd() + end;
  return text.includes("\r\n") ? code.replaceAll(/\r?\n/g, "\r\n") : code;
}

/** Adds the call of the middleware after the statement that creates the app, or to the chain that it begins. */
function addMiddleware(body: Statement[], call: string): void {
  const app = findApp(body) as App;
  const [statement] = statementsOf(`${app.name}.${call};`);
  if (!app.chain) {
    body.splice(body.indexOf(app.statement) + 1, 0, statement as Statement);
    return;
  }
  const { expression } = statement as Extract<Statement, { type: "ExpressionStatement" }>;
  const { callee } = expression as Extract<Expression, { type: "CallExpression" }>;
  (callee as Extract<Expression, { type: "MemberExpression" }>).object = app.chain.node;
  app.chain.replace(expression);
}

/** Returns the statements of a module; undefined if the parser does not understand it. */
function parseStatements(text: string): Statement[] | undefined {
  try {
    return statementsOf(text);
  } catch {
    return undefined;
  }
}

function statementsOf(text: string): Statement[] {
  return (parseModule(text).$ast as { body: Statement[] }).body;
}

function importsMiddleware(statement: Statement): boolean {
  return (
    statement.type === "ImportDeclaration" &&
    statement.source.value === "edge-weir" &&
    statement.specifiers.some((each) => importedName(each) === "rateLimit")
  );
}

/** An expression, and a function that replaces it. */
interface Owner {
  readonly node: Expression;
  readonly replace: (expression: Expression) => void;
}

/** The only app that a file creates. */
interface App {
  readonly name: string;
  readonly statement: Statement;
  /** The creation at the start of a chain of calls; undefined if the statement only creates the app. */
  readonly chain: Owner | undefined;
}

/** @returns undefined if the file does not create exactly one app and export it as the default */
function findApp(body: readonly Statement[]): App | undefined {
  const classes = appClasses(body);
  const apps = body.flatMap((statement): App[] => {
    const declaration =
      statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declaration?.type !== "VariableDeclaration") return [];
    const [declarator, ...others] = declaration.declarations;
    const { id, init } = declarator ?? {};
    if (others.length > 0 || id?.type !== "Identifier" || !init) return [];
    const created = creationIn({ node: init, replace: () => {} }, classes);
    if (!created) return [];
    return [{ name: id.name, statement, chain: created.node === init ? undefined : created }];
  });
  const [app] = apps;
  return apps.length === 1 && app && isDefaultExport(body, app.name) ? app : undefined;
}

/** Returns the export of one of Weir's classes, or an import, under a name. */
function exportedAs(className: string, name: string): string {
  return className === name ? className : `${className} as ${name}`;
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

/** The classes of apps, and the packages that export them. */
const APP_CLASSES: Readonly<Record<string, RegExp>> = {
  Hono: /^hono(\/(quick|tiny))?$/,
  OpenAPIHono: /^@hono\/zod-openapi$/,
};

/** Returns the names under which the file imports the classes of apps. */
function appClasses(body: readonly Statement[]): Set<string> {
  const names = new Set<string>();
  for (const statement of body) {
    if (statement.type !== "ImportDeclaration") continue;
    for (const specifier of statement.specifiers) {
      const imported = importedName(specifier) ?? "";
      if (APP_CLASSES[imported]?.test(statement.source.value)) names.add(specifier.local.name);
    }
  }
  return names;
}

/** Returns the expression `new Hono()` at the start of a chain of calls, with the node that contains it. */
function creationIn(owner: Owner, classes: ReadonlySet<string>): Owner | undefined {
  const { node } = owner;
  if (node.type === "NewExpression") {
    const { callee } = node;
    return callee.type === "Identifier" && classes.has(callee.name) ? owner : undefined;
  }
  if (node.type !== "CallExpression" || node.callee.type !== "MemberExpression") return undefined;
  const { callee } = node;
  const replace = (call: Expression) => {
    callee.object = call;
  };
  return callee.object.type === "Super"
    ? undefined
    : creationIn({ node: callee.object, replace }, classes);
}

/** Whether the module exports the app as the default, alone or as the handler `fetch`. */
function isDefaultExport(body: readonly Statement[], app: string): boolean {
  return body.some((statement) => {
    if (statement.type === "ExportNamedDeclaration" && !statement.source) {
      return statement.specifiers.some(
        (each) =>
          each.type === "ExportSpecifier" &&
          each.local.name === app &&
          nameOf(each.exported) === "default",
      );
    }
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

/** Weir's class of the Durable Objects that hold the counters. */
export const COUNTER = "CounterObject";

/** Weir's class of the Durable Objects with the statistics and the overrides. */
export const CONTROL = "ControlObject";

/** One of Weir's classes in the file of an app. */
export interface WeirClass {
  /** The name under which the file exports or should export the class. */
  readonly name: string;
  readonly isExported: boolean;
}

/**
 * Finds the export of one of Weir's classes. If the app exports a class of its own with this name, the name begins with
 * `Weir`.
 *
 * @param className the name of the class in the package
 * @param isLimited whether the file imports `rateLimit`. A class with this name from another file of the app then
 *   counts as Weir's, because the user may have moved the export
 */
export function readClass(
  body: readonly Statement[],
  className: string,
  isLimited: boolean,
): WeirClass {
  const locals = localNames(body, className);
  const exported = body.flatMap((statement): { name: string; isWeir: boolean }[] => {
    if (statement.type === "ExportAllDeclaration") {
      return statement.source.value === "edge-weir" ? [{ name: className, isWeir: true }] : [];
    }
    if (statement.type !== "ExportNamedDeclaration") return [];
    const { declaration, specifiers, source } = statement;
    if (declaration) {
      return declaredNames(declaration).map((name) => ({ name, isWeir: false }));
    }
    return specifiers.flatMap((each) => {
      if (each.type !== "ExportSpecifier") return [];
      const name = nameOf(each.exported);
      if (!source) return [{ name, isWeir: locals.has(each.local.name) }];
      const isMoved = isLimited && source.value.startsWith(".");
      const isWeir =
        (source.value === "edge-weir" && each.local.name === className) ||
        (isMoved && name === className);
      return [{ name, isWeir }];
    });
  });
  const found = exported.find(({ isWeir }) => isWeir);
  if (found) return { name: found.name, isExported: true };
  const isTaken = exported.some(({ name }) => name === className);
  return { name: isTaken ? `Weir${className}` : className, isExported: false };
}

/** Returns the names under which the file imports one of Weir's classes. */
function localNames(body: readonly Statement[], className: string): Set<string> {
  const names = new Set<string>();
  for (const statement of body) {
    if (statement.type !== "ImportDeclaration" || statement.source.value !== "edge-weir") continue;
    for (const each of statement.specifiers) {
      if (importedName(each) === className) names.add(each.local.name);
    }
  }
  return names;
}

/** Returns the names of classes and variables that a statement declares. */
function declaredNames(declaration: Statement): string[] {
  if (declaration.type === "ClassDeclaration") return declaration.id ? [declaration.id.name] : [];
  if (declaration.type !== "VariableDeclaration") return [];
  return declaration.declarations.flatMap(({ id }) => (id.type === "Identifier" ? [id.name] : []));
}

/** Returns the name that another module gives to an import; undefined for default and namespace. */
export function importedName(
  specifier: ImportDeclaration["specifiers"][number],
): string | undefined {
  return specifier.type === "ImportSpecifier" ? nameOf(specifier.imported) : undefined;
}

/** Returns the name of an import or an export, which may be a text. */
export function nameOf(
  node: { type: "Identifier"; name: string } | { type: "StringLiteral"; value: string },
): string {
  return node.type === "Identifier" ? node.name : node.value;
}
