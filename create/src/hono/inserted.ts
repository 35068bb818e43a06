import { isDeepStrictEqual } from "node:util";
import type { File } from "@babel/types";
import { parseModule } from "./find-app.ts";

/** The code that an edit adds to a module, apart from its place. */
export interface Additions {
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
export function isExactly(
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
