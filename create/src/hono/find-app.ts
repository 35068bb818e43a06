import { parse } from "@babel/parser";
import type { Expression, File, Node, Statement } from "@babel/types";
import {
  CONTROL,
  COUNTER,
  importedName,
  nameOf,
  readClass,
  type WeirClass,
} from "./find-classes.ts";
import type { AppFile } from "./hono-app.ts";

/** The place for the middleware. */
export interface Place {
  readonly kind: "statement" | "chain";
  readonly offset: number;
  /** The name of the app's variable. */
  readonly app: string;
  /** Whether the app is created without an argument list, as in `new Hono`. */
  readonly isBare: boolean;
}

/** The parts of an app's file that matter for Weir. */
export interface AppModule {
  /** The place for the middleware; undefined if the file does not fit. */
  readonly place: Place | undefined;
  /** Whether the file imports `rateLimit` from edge-weir. */
  readonly isLimited: boolean;
  readonly counter: WeirClass;
  readonly control: WeirClass;
  /** The end of the last import. */
  readonly endOfImports: number;
}

/** The classes of apps, and the packages that export them. */
const APP_CLASSES: Readonly<Record<string, RegExp>> = {
  Hono: /^hono(\/(quick|tiny))?$/,
  OpenAPIHono: /^@hono\/zod-openapi$/,
};

/**
 * Reads the file of an app. The middleware has a place only if the file creates exactly one app and
 * exports it as the default.
 *
 * @returns undefined if the parser does not understand the file
 */
export function readAppModule({ path, text }: AppFile): AppModule | undefined {
  const body = parseModule(path, text)?.program.body;
  if (!body) return undefined;
  const imports = body.filter((statement) => statement.type === "ImportDeclaration");
  const isLimited = imports.some(
    ({ source, specifiers }) =>
      source.value === "edge-weir" && specifiers.some((each) => importedName(each) === "rateLimit"),
  );
  const lastImport = imports.at(-1);
  return {
    place: findPlace(body, text),
    isLimited,
    counter: readClass(body, COUNTER, isLimited),
    control: readClass(body, CONTROL, isLimited),
    endOfImports: endOf(
      lastImport,
      lastImport?.attributes?.length ? undefined : lastImport?.source,
      text,
    ),
  };
}

/**
 * Returns the end of a statement. In code without semicolons, the parser counts a semicolon at the
 * start of a later line as a part of the statement. This function does not.
 *
 * @param code the last part of the statement before its semicolon
 */
function endOf(statement: Node | undefined, code: Node | undefined, text: string): number {
  const end = statement?.end ?? 0;
  const codeEnd = code?.end ?? end;
  return /[\r\n]/.test(text.slice(codeEnd, end)) ? codeEnd : end;
}

/** Returns the parsed module; undefined if the parser does not understand it. */
export function parseModule(path: string, text: string): File | undefined {
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
function findPlace(body: readonly Statement[], text: string): Place | undefined {
  const classes = appClasses(body);
  const places = body.flatMap((statement): Place[] => {
    const declaration =
      statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declaration?.type !== "VariableDeclaration" || declaration.declarations.length !== 1)
      return [];
    const [declarator] = declaration.declarations;
    const { id, init } = declarator ?? {};
    if (id?.type !== "Identifier" || !init) return [];
    const created = creationIn(init, classes);
    if (!created?.end || !statement.end) return [];
    const app = { app: id.name, isBare: text[created.end - 1] !== ")" };
    return init === created
      ? [{ kind: "statement", offset: endOf(statement, declarator, text), ...app }]
      : [{ kind: "chain", offset: created.end, ...app }];
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
      const imported = importedName(specifier) ?? "";
      if (APP_CLASSES[imported]?.test(statement.source.value)) names.add(specifier.local.name);
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
