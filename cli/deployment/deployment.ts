import { readFile } from "node:fs/promises";
import { basename, dirname, relative, resolve } from "node:path";
import { textVar } from "../../src/config/bindings.ts";
import { type CheckFinding, found } from "../finding.ts";
import { findWranglerFile, isTable, parseWranglerFile, type Table } from "./wrangler-file.ts";

/** A route or a custom domain of the Worker. */
export interface Route {
  readonly pattern: string;
  readonly customDomain: boolean;
}

/** A binding of a Durable Object namespace. */
export interface ObjectBinding {
  readonly name: string;
  readonly className: string | undefined;
  /** The name of the Worker that has the class; undefined if it is this Worker. */
  readonly scriptName: string | undefined;
}

/** Where a class of Durable Objects is declared, and whether its objects have SQLite. */
export interface ObjectClass {
  readonly by: "exports" | "migrations";
  readonly sqlite: boolean;
  /** The name with which the class was created. A migration may have renamed it. */
  readonly createdAs: string;
}

/** Facts about the Worker's main module, as far as its text shows them. */
export interface MainModule {
  /** The path of the module; undefined if `main` is not set in wrangler's configuration. */
  readonly path: string | undefined;
  /** Whether the default export is `weir(…)`, which needs an origin. */
  readonly forwards: boolean;
  /** Whether Weir may forward requests to an origin, as far as the text shows. */
  readonly mayForward: boolean;
}

/** The settings of the Worker in one environment of wrangler's configuration. */
export interface Deployment {
  /** The folder of wrangler's file. */
  readonly folder: string;
  /** The name of wrangler's file. */
  readonly file: string;
  /** The name of the environment; undefined for the top level. */
  readonly environment: string | undefined;
  /** The name of the Worker. */
  readonly name: string | undefined;
  readonly main: MainModule;
  /** Whether the file configures a Pages project, which has no main module and no routes. */
  readonly isPages: boolean;
  readonly routes: readonly Route[];
  /** The field `workers_dev`; undefined if it is not set. */
  readonly workersDev: boolean | undefined;
  readonly previewUrls: boolean | undefined;
  readonly cache: boolean;
  readonly compatibilityDate: string | undefined;
  readonly compatibilityFlags: readonly string[];
  readonly vars: Table;
  /** The names in `secrets.required`; undefined if this list is not set. */
  readonly requiredSecrets: readonly string[] | undefined;
  /** The names of the bindings that have a method `fetch`. */
  readonly fetchers: ReadonlySet<string>;
  /** The bindings of services, with the name of the Worker that each of them calls. */
  readonly services: readonly { readonly name: string; readonly service: string | undefined }[];
  /** The names of the bindings of Cloudflare's own rate limiters. */
  readonly rateLimits: readonly string[];
  /** The names of the bindings of data sets of Analytics Engine. */
  readonly dataSets: readonly string[];
  readonly objects: readonly ObjectBinding[];
  /** The names of the top level's bindings of Durable Objects. Environments do not inherit them. */
  readonly topLevelObjects: readonly string[];
  /** The Worker's own classes of Durable Objects, by `exports` and `migrations`. */
  readonly classes: ReadonlyMap<string, ObjectClass>;
  /** Whether `migrations` declares classes. Cloudflare refuses `exports` beside it. */
  readonly hasMigrations: boolean;
}

/** The name of the secret with the URL of the Redis database. */
export const URL_SECRET = "UPSTASH_REDIS_REST_URL";
/** The name of the secret with the token of the Redis database. */
export const TOKEN_SECRET = "UPSTASH_REDIS_REST_TOKEN";

/** Returns a var as the Worker reads it; undefined if it is missing or blank. */
export function textVarOf({ vars }: Deployment, name: string): string | undefined {
  return textVar(vars, name);
}

/** Whether `secrets.required` names a secret. */
export function isSecretListed({ requiredSecrets }: Deployment, name: string): boolean {
  return requiredSecrets?.includes(name) === true;
}

/** Names the environment of a deployment in messages. */
export function placeOf({ environment }: Deployment): string {
  return environment === undefined ? "the top level" : `the environment ${environment}`;
}

/** The environments of wrangler's configuration, or a fault if it cannot be read. */
type LoadedDeployments =
  | { readonly deployments: readonly Deployment[] }
  | { readonly fault: CheckFinding };

/**
 * Reads wrangler's configuration as wrangler reads it.
 *
 * @param file the path of Weir's configuration
 * @param wranglerFile the path of wrangler's configuration; by default, the file that `findWranglerFile` finds
 * @returns one deployment for the top level and for each environment; none if there is no file
 */
export async function loadDeployments(
  file: string,
  wranglerFile: string | undefined = findWranglerFile(file),
): Promise<LoadedDeployments> {
  if (wranglerFile === undefined) return { deployments: [] };
  try {
    const top = await parseWranglerFile(wranglerFile);
    const environments = [undefined, ...Object.keys(tableOf(top.env))];
    const reading = environments.map((name) => deploymentOf(wranglerFile, top, name));
    return { deployments: await Promise.all(reading) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const isMissing = code === "ENOENT";
    const fault = found(
      "wrangler-unread",
      "",
      isMissing ? "There is no such file" : `The file cannot be read: ${message}`,
      isMissing ? "Correct the path in --wrangler" : "Correct the file at this place",
    );
    return { fault: { ...fault, file: isMissing ? wranglerFile : basename(wranglerFile) } };
  }
}

/** Wrangler's fields, besides `services` and `assets`, for bindings with a method `fetch`. */
const FETCHERS = ["mtls_certificates", "vpc_services", "vpc_networks"];

async function deploymentOf(
  path: string,
  top: Table,
  environment: string | undefined,
): Promise<Deployment> {
  const own = environment === undefined ? top : tableOf(tableOf(top.env)[environment]);
  // Wrangler's environments inherit only the fields that are read with this function.
  const inherited = (field: string) => own[field] ?? top[field];
  const routes = [inherited("routes") ?? [], inherited("route") ?? []].flat().flatMap(toRoute);
  const services = tablesOf(own.services).map(({ binding, service }) => ({
    name: textOf(binding) ?? "",
    service: textOf(service),
  }));
  const fetchers = [
    tableOf(inherited("assets")),
    ...FETCHERS.flatMap((name) => tablesOf(own[name])),
  ];
  const migrations = tablesOf(inherited("migrations"));
  const required = tableOf(own.secrets).required;
  // Before wrangler 4.36, a rate limiter was an unsafe binding, which still works.
  const olderRateLimits = tablesOf(tableOf(own.unsafe).bindings).filter(
    ({ type }) => type === "ratelimit",
  );
  return {
    folder: dirname(path),
    file: basename(path),
    environment,
    name: nameOf(top, own, environment),
    main: await readMainModule(dirname(path), textOf(inherited("main"))),
    isPages: textOf(inherited("pages_build_output_dir")) !== undefined,
    routes,
    workersDev: booleanOf(inherited("workers_dev")),
    previewUrls: booleanOf(inherited("preview_urls")),
    cache: tableOf(inherited("cache")).enabled === true,
    compatibilityDate: textOf(inherited("compatibility_date")),
    compatibilityFlags: textsOf(inherited("compatibility_flags")),
    vars: tableOf(own.vars),
    requiredSecrets: Array.isArray(required) ? textsOf(required) : undefined,
    fetchers: new Set([
      ...services.map(({ name }) => name),
      ...fetchers.map(({ binding }) => textOf(binding) ?? ""),
    ]),
    services,
    rateLimits: [...tablesOf(own.ratelimits), ...olderRateLimits].map(
      ({ name }) => textOf(name) ?? "",
    ),
    dataSets: tablesOf(own.analytics_engine_datasets).map(({ binding }) => textOf(binding) ?? ""),
    objects: objectsOf(own),
    topLevelObjects: objectsOf(top).map(({ name }) => name),
    classes: classesOf(migrations, tableOf(inherited("exports"))),
    hasMigrations: migrations.length > 0,
  };
}

function nameOf(top: Table, own: Table, environment: string | undefined): string | undefined {
  const name = textOf(top.name);
  return environment === undefined
    ? name
    : (textOf(own.name) ?? (name && `${name}-${environment}`));
}

function toRoute(route: unknown): Route[] {
  if (typeof route === "string")
    return route === "" ? [] : [{ pattern: route, customDomain: false }];
  const { pattern, custom_domain } = tableOf(route);
  if (typeof pattern !== "string") return [];
  return [{ pattern, customDomain: custom_domain === true }];
}

function objectsOf(table: Table): ObjectBinding[] {
  return tablesOf(tableOf(table.durable_objects).bindings).map((binding) => ({
    name: textOf(binding.name) ?? "",
    className: textOf(binding.class_name),
    scriptName: textOf(binding.script_name),
  }));
}

/** Applies the migrations in their order, and then the classes of `exports` that are in use. */
function classesOf(migrations: readonly Table[], exported: Table): Map<string, ObjectClass> {
  const classes = new Map<string, ObjectClass>();
  const add = (sqlite: boolean) => (name: string) =>
    classes.set(name, { by: "migrations", sqlite, createdAs: name });
  for (const step of migrations) {
    for (const name of textsOf(step.deleted_classes)) classes.delete(name);
    for (const { from, to } of tablesOf(step.renamed_classes)) {
      const renamed = classes.get(`${from}`);
      classes.delete(`${from}`);
      if (renamed) classes.set(`${to}`, renamed);
    }
    // The other Worker's configuration says whether a transferred class has SQLite.
    for (const { to } of tablesOf(step.transferred_classes)) add(true)(`${to}`);
    textsOf(step.new_classes).forEach(add(false));
    textsOf(step.new_sqlite_classes).forEach(add(true));
  }
  for (const [name, value] of Object.entries(exported)) {
    const { type, state = "created", storage } = tableOf(value);
    if (type !== "durable-object") continue;
    if (state !== "created" && state !== "expecting-transfer") continue;
    classes.set(name, { by: "exports", sqlite: storage !== "legacy-kv", createdAs: name });
  }
  return classes;
}

/**
 * Reads the text of a Worker's main module. Bundling the module would take longer than all other checks.
 *
 * @param folder the folder of wrangler's configuration, from which wrangler resolves the path
 */
async function readMainModule(folder: string, path: string | undefined): Promise<MainModule> {
  if (path === undefined) {
    return { path, forwards: false, mayForward: true };
  }
  const file = resolve(folder, path);
  const source = await readFile(file, "utf8").catch(() => undefined);
  // Removes comments. It may also remove parts of strings that look like comments, which does no harm.
  const text = source?.replace(/\/\*[\s\S]*?\*\/|(^|[^:"'`])\/\/.*$/gm, "$1");
  return {
    path: relative(folder, file),
    forwards: text !== undefined && /\bexport\s+default\s+weir\s*\(/.test(text),
    // Another module may call `weir`, unless the text has one of Weir's other two entrances.
    mayForward:
      text === undefined || /\bweir\s*\(/.test(text) || !/\b(rateLimit|WeirService)\b/.test(text),
  };
}

function tableOf(value: unknown): Table {
  return isTable(value) ? value : {};
}

function tablesOf(value: unknown): Table[] {
  return Array.isArray(value) ? value.filter(isTable) : [];
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function booleanOf(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}
