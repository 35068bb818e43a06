import type { ImportDeclaration, Statement } from "@babel/types";

/** Weir's class of the Durable Objects that hold the counters. */
export const COUNTER = "CounterObject";

/** Weir's class of the Durable Objects with the statistics and the overrides. */
export const CONTROL = "ControlObject";

/** One of Weir's classes in the file of an app. */
export interface WeirClass {
  /** The name under which the file exports the class, or under which it should. */
  readonly name: string;
  readonly isExported: boolean;
}

/**
 * Finds the export of one of Weir's classes. If the app exports a class of its own with this name, the
 * name begins with `Weir`.
 *
 * @param className the name of the class in the package
 * @param isLimited whether the file imports `rateLimit`. Then a class with this name of another
 * file of the app counts as Weir's, because the user may have moved the export
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
