import type { ImportDeclaration, Statement } from "@babel/types";

/** The name of Weir's class of Durable Objects. */
export const COUNTER = "CounterObject";

/** The name of Weir's class in an app that has a class {@link COUNTER} of its own. */
export const OTHER_COUNTER = "WeirCounterObject";

/**
 * Finds the exports of Weir's class, and of other classes with its name.
 *
 * @param isLimited whether the file imports `rateLimit`. Then a class {@link COUNTER} of another
 * file of the app counts as Weir's, because the user may have moved the export
 */
export function readCounter(
  body: readonly Statement[],
  isLimited: boolean,
): { counter: string | undefined; isNameTaken: boolean } {
  const locals = localNames(body);
  const exported = body.flatMap((statement): { name: string; isWeir: boolean }[] => {
    if (statement.type === "ExportAllDeclaration") {
      return statement.source.value === "edge-weir" ? [{ name: COUNTER, isWeir: true }] : [];
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
        (source.value === "edge-weir" && each.local.name === COUNTER) ||
        (isMoved && name === COUNTER);
      return [{ name, isWeir }];
    });
  });
  return {
    counter: exported.find(({ isWeir }) => isWeir)?.name,
    isNameTaken: exported.some(({ name, isWeir }) => name === COUNTER && !isWeir),
  };
}

/** Returns the names under which the file imports Weir's class. */
function localNames(body: readonly Statement[]): Set<string> {
  const names = new Set<string>();
  for (const statement of body) {
    if (statement.type !== "ImportDeclaration" || statement.source.value !== "edge-weir") continue;
    for (const each of statement.specifiers) {
      if (importedName(each) === COUNTER) names.add(each.local.name);
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
