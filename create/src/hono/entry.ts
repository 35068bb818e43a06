import type { Expression, Statement } from "@babel/types";
import { generateCode, type ProxifiedModule, parseModule } from "magicast";
import type { AppFile, Edit } from "./app-files.ts";

/** Weir's classes of Durable Objects: the one with the statistics, and the one with the counters. */
export const CLASSES = { WEIR_CONTROL: "ControlObject", COUNTERS: "CounterObject" };

/** The classes of apps, and the packages that export them. */
const APP_CLASS = /^(hono(\/(quick|tiny))?#Hono|@hono\/zod-openapi#OpenAPIHono)$/;

/**
 * Adds the middleware and the export of the Durable Objects' classes to the file of an app, and changes no other code.
 *
 * The middleware comes directly after `new Hono()`, so that it runs before all routes. This is safe only if the file
 * creates exactly one app and exports it as the default. For all other files the edit has the lines to add by hand.
 *
 * @param configPath the path for the import of weir.config.ts, such as `../weir.config`
 */
export function editEntry({ path, text }: AppFile, configPath: string): Edit {
  const module = moduleOf(text);
  /** What each imported name stands for, such as `hono#Hono`. */
  const imports = new Map(
    module?.imports.$items.map(({ local, from, imported }) => [local, `${from}#${imported}`]),
  );
  const isLimited = [...imports.values()].includes("edge-weir#rateLimit");
  const missing = Object.values(CLASSES).filter((name) => !isExported(name, text));
  const same = { text, changes: [], byHand: [], advice: [] };
  if (isLimited && missing.length === 0) return same;
  const quote = /^import [^"]*'/m.test(text) ? "'" : '"';
  const config = /\bconfig\b/.test(text) ? "weirConfig" : "config";
  const use = /\brateLimit\b/.test(text) ? "weirRateLimit" : "rateLimit";
  const call = `use(${use}(${config}));`;
  const lines: string[] = [];
  if (!isLimited) {
    const imported = use === "rateLimit" ? use : `rateLimit as ${use}`;
    lines.push(`import { ${imported} } from ${quote}edge-weir${quote};`);
    lines.push(`import ${config} from ${quote}${configPath}${quote};`);
  }
  if (missing.length > 0) {
    lines.push(`export { ${missing.join(", ")} } from ${quote}edge-weir${quote};`);
  }
  const app = module && findApp(statementsOf(module), imports);
  if (!app || app.name !== defaultExport(text)) {
    if (!isLimited) lines.push(`app.${call} // directly after new Hono(), before all routes`);
    const step = `${path}: the starter cannot edit this file safely, so add these lines yourself:`;
    return { ...same, byHand: [[step, ...lines].join("\n")] };
  }
  const changes = missing.length === 0 ? [] : [`the export of ${missing.join(" and ")}`];
  if (!isLimited) {
    addMiddleware(statementsOf(module), app, call);
    changes.unshift(`${app.name}.use(rateLimit(config)): limits all requests of the app`);
  }
  // weirAdmin makes the app's bundle larger, and not every app has operators.
  const advice = `${path}: for the dashboard and commands such as weir peek, import weirAdmin from "edge-weir/admin", write ${app.name}.route("/", weirAdmin(config)) before ${app.name}.use(rateLimit(config)), and set the secret WEIR_ADMIN_TOKEN`;
  const advised = text.includes("weirAdmin") ? [] : [advice];
  return { text: printed(module, lines, text), changes, byHand: [], advice: advised };
}

/** Returns the text of a module with more lines after its imports, in the line ends of its old text. */
function printed(module: ProxifiedModule, lines: readonly string[], before: string): string {
  const body = statementsOf(module);
  const lastImport = body.findLastIndex(({ type }) => type === "ImportDeclaration");
  body.splice(lastImport + 1, 0, ...statementsOf(moduleOf(lines.join("\n"))));
  const [end = ""] = /\s*$/.exec(before) ?? [];
  const code = generateCode(module).code.trimEnd() + end;
  return before.includes("\r\n") ? code.replaceAll(/\r?\n/g, "\r\n") : code;
}

/** Adds the call of the middleware after the statement that creates the app, or to the chain that it begins. */
function addMiddleware(body: Statement[], { name, statement, chain }: App, call: string): void {
  const [added] = statementsOf(moduleOf(`${name}.${call}`));
  if (added?.type !== "ExpressionStatement") return;
  const { expression } = added;
  if (!chain) body.splice(body.indexOf(statement) + 1, 0, added);
  else if (expression.type === "CallExpression" && expression.callee.type === "MemberExpression") {
    expression.callee.object = chain.object;
    chain.object = expression;
  }
}

/** Parses a module; undefined if the parser does not understand it. */
function moduleOf(text: string): ProxifiedModule | undefined {
  try {
    return parseModule(text.replaceAll("\r\n", "\n"));
  } catch {
    return undefined;
  }
}

function statementsOf(module: ProxifiedModule | undefined): Statement[] {
  return (module?.$ast as { body: Statement[] } | undefined)?.body ?? [];
}

/** The only app that a file creates. */
interface App {
  readonly name: string;
  readonly statement: Statement;
  /** The access to a member of `new Hono()` that begins a chain of calls; undefined without a chain. */
  readonly chain: { object: Expression } | undefined;
}

/** @returns undefined if the file does not create exactly one app */
function findApp(
  body: readonly Statement[],
  imports: ReadonlyMap<string, string>,
): App | undefined {
  const apps = body.flatMap((statement): App[] => {
    const declaration =
      statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declaration?.type !== "VariableDeclaration") return [];
    const [{ id, init } = {}, ...others] = declaration.declarations;
    if (others.length > 0 || id?.type !== "Identifier" || !init) return [];
    let chain: App["chain"];
    let node = init;
    while (node.type === "CallExpression" && node.callee.type === "MemberExpression") {
      if (node.callee.object.type === "Super") return [];
      chain = node.callee as { object: Expression };
      node = chain.object;
    }
    if (node.type !== "NewExpression" || node.callee.type !== "Identifier") return [];
    const isApp = APP_CLASS.test(imports.get(node.callee.name) ?? "");
    return isApp ? [{ name: id.name, statement, chain }] : [];
  });
  return apps.length === 1 ? apps[0] : undefined;
}

/** Returns the name of the variable that is exported as the default, alone or as the handler `fetch`. */
function defaultExport(text: string): string | undefined {
  const forms = [
    /^export default ([\w$]+)(?![\w$.(])/m,
    /^export default \{.*?\bfetch:\s*([\w$]+)\.fetch\b/ms,
    /^export \{[^}]*?([\w$]+) as default\b/m,
  ];
  return forms.flatMap((form) => form.exec(text)?.[1] ?? [])[0];
}

/** Whether a file exports a class, also under another name, or from another file. */
function isExported(className: string, text: string): boolean {
  const form = String.raw`\bexport\s*(class\s+|const\s+|\{[^}]*)\b${className}\b`;
  return new RegExp(form).test(text) || /\bexport \* from ["']edge-weir["']/.test(text);
}
