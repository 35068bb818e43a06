import { basename, dirname } from "node:path";
import { MODE_VAR, PREFIX_VAR, textVar } from "../../src/config/bindings.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { Finding, LocalFinding } from "../finding.ts";
import { type MainModule, readMainModule } from "./main-module.ts";
import { classesOf, type StorageOfClass } from "./migrations.ts";
import { isToml } from "./notation.ts";
import { routeFieldFindings } from "./route-fields.ts";
import { findWranglerFile, isTable, parseWranglerFile, type Table } from "./wrangler-file.ts";

/**
 * Fields of the top level and of environments that wrangler ignores in any other table, with only a
 * warning. In TOML, a line belongs to the last table above it.
 */
const FIELDS = [
  "main",
  "route",
  "routes",
  "workers_dev",
  "preview_urls",
  "compatibility_date",
  "compatibility_flags",
  "vars",
  "secrets",
  "services",
  "durable_objects",
  "ratelimits",
  "migrations",
];

/** Tables of wrangler's configuration that have none of these fields. */
const TABLES = [
  "migrations",
  "durable_objects",
  "services",
  "ratelimits",
  "secrets",
  "kv_namespaces",
  "r2_buckets",
  "d1_databases",
  "analytics_engine_datasets",
  "queues",
  "assets",
  "limits",
  "observability",
  "placement",
  "triggers",
  "cache",
  "build",
  "routes",
  "route",
];

/**
 * Returns the faults about fields in a wrong table, for the top level or for one environment.
 *
 * @param file the name of wrangler's file
 * @param own the table of the top level or of the environment
 * @param inherited returns the value of a field, as the Worker gets it
 * @param environment the name of the environment; undefined for the top level
 */
function misplacedFields(
  file: string,
  own: Table,
  inherited: (field: string) => unknown,
  environment: string | undefined,
): LocalFinding[] {
  const found = otherTables(own).flatMap(({ table, path }) =>
    FIELDS.filter((field) => field in table).map((field) => ({ field, path })),
  );
  const vars = isTable(own.vars) ? own.vars : {};
  const inVars = FIELDS.filter((field) => isSetting(field, vars[field]))
    // A var may have any name. A var with the name of a setting is not suspicious if the setting is
    // set too.
    .filter((field) => inherited(field) === undefined)
    .map((field) => ({ field, path: "vars" }));
  const lists = isList(own.durable_objects) ? [listFault(file)] : [];
  return [...lists, ...[...found, ...inVars].map((each) => fault(file, environment, each))];
}

function fault(
  file: string,
  environment: string | undefined,
  { field, path }: { readonly field: string; readonly path: string },
): LocalFinding {
  const place = environment === undefined ? "the top level" : `env.${environment}`;
  const table =
    environment === undefined ? "first [table] of the file" : `first table [${place}.…]`;
  return {
    code: "field-misplaced",
    severity: "fault",
    path: `${path}.${field}`,
    message: `${field} is in ${path}, where wrangler ignores it, and not in ${place}`,
    cure: isToml(file)
      ? `Move the line above the ${table}, because a line belongs to the last [table] above it`
      : `Move it to ${place}`,
  };
}

function listFault(file: string): LocalFinding {
  return {
    code: "field-misplaced",
    severity: "fault",
    path: "durable_objects",
    message: "durable_objects is a list, so wrangler does not find the bindings in it",
    cure: isToml(file)
      ? "Write [[durable_objects.bindings]] above each binding"
      : 'Write "durable_objects": { "bindings": [...] }',
  };
}

/** Returns the tables of the top level or of an environment that are not for vars. */
function otherTables(own: Table): PlacedTable[] {
  return TABLES.flatMap((name) => tablesIn(own[name], name));
}

/** A table, and its path in the top level or in the environment. */
interface PlacedTable {
  readonly table: Table;
  readonly path: string;
}

/** Returns a table, or the tables of a list, and the tables in them, each with its path. */
function tablesIn(value: unknown, path: string): PlacedTable[] {
  if (isList(value)) return value.flatMap((each, index) => tablesIn(each, `${path}[${index}]`));
  if (!isTable(value)) return [];
  const inner = ["bindings", "producers", "consumers"].flatMap((name) =>
    tablesIn(value[name], `${path}.${name}`),
  );
  return [{ table: value, path }, ...inner];
}

/** Whether a var has the form of the setting with the same name. */
function isSetting(field: string, value: unknown): boolean {
  if (field === "workers_dev" || field === "preview_urls") return typeof value === "boolean";
  if (field === "compatibility_date") return /^\d{4}-\d\d-\d\d$/.test(String(value));
  if (field === "route") return typeof value === "string" && value.includes(".");
  if (field === "main") return typeof value === "string" && /\.[mc]?[jt]sx?$/.test(value);
  return (field === "routes" || field === "compatibility_flags") && isList(value);
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** The vars that Weir reads from wrangler's configuration, besides secrets. */
const VARS = [MODE_VAR, PREFIX_VAR, "ORIGIN_URL"];

/**
 * Returns warnings about Weir's vars with misspelt names, and about Weir's vars outside of the table
 * `vars`, which wrangler ignores.
 *
 * @param own the table of the top level or of the environment
 * @param environment the name of the environment; undefined for the top level
 */
function varNameWarnings(own: Table, environment: string | undefined): LocalFinding[] {
  const vars = isTable(own.vars) ? own.vars : {};
  const place = environment === undefined ? "vars" : `env.${environment}.vars`;
  const misspelt = Object.keys(vars).flatMap((name): LocalFinding[] => {
    const meant = nearestVar(name);
    if (meant === undefined || meant === name || meant in vars) return [];
    return [
      {
        code: "var-misspelt",
        severity: "warning",
        path: `vars.${name}`,
        message: `Weir does not read the var ${name}`,
        cure: `Write ${meant}`,
      },
    ];
  });
  const outside = Object.keys(own).flatMap((name): LocalFinding[] => {
    const meant = isTable(own[name]) ? undefined : nearestVar(name);
    if (meant === undefined) return [];
    return [
      {
        code: "var-misplaced",
        severity: "warning",
        path: name,
        message: `${name} is not in vars, so wrangler does not pass it to the Worker`,
        cure: `Move it into ${place}${meant === name ? "" : `, as ${meant}`}`,
      },
    ];
  });
  const inTables = otherTables(own).flatMap(({ table, path }) =>
    VARS.filter((name) => name in table).map(
      (name): LocalFinding => ({
        code: "var-misplaced",
        severity: "warning",
        path: `${path}.${name}`,
        message: `${name} is in ${path} and not in ${place}, so wrangler does not pass it to the Worker`,
        cure: `Move the line below [${place}]`,
      }),
    ),
  );
  return [...misspelt, ...outside, ...inTables];
}

/** Returns the name of Weir's var that is most similar to a name; undefined if none is similar. */
function nearestVar(name: string): string | undefined {
  return VARS.includes(name) ? name : nearestName(name, VARS);
}

/** A route or a custom domain of the Worker. */
export interface Route {
  readonly pattern: string;
  readonly customDomain: boolean;
}

/** A binding of a Durable Object namespace. */
export interface ObjectBinding {
  readonly name: string;
  readonly className: string | undefined;
  /** The name of another Worker that has the class; undefined if this Worker has it. */
  readonly scriptName: string | undefined;
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
  /** Undefined if it is not set. */
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
  /** The bindings of Cloudflare's own rate limiters, with their periods in seconds. */
  readonly rateLimits: readonly { readonly name: string; readonly period: unknown }[];
  readonly objects: readonly ObjectBinding[];
  /** The names of the top level's bindings of Durable Objects. Environments do not inherit them. */
  readonly topLevelObjects: readonly string[];
  /** The classes of Durable Objects that the migrations create, with their kinds of storage. */
  readonly classes: ReadonlyMap<string, StorageOfClass>;
  /** The findings about fields and vars in a wrong table or with a wrong name. */
  readonly misplaced: readonly LocalFinding[];
}

/** Bindings other than `services` that forward requests. */
const FETCHERS = ["mtls_certificates", "vpc_services", "vpc_networks"];

/** Returns one deployment for the top level, and one for each environment. */
async function deploymentsOf(path: string, top: Table): Promise<Deployment[]> {
  const environments = Object.keys(tableOf(top.env));
  const all = [undefined, ...environments].map((env) => deploymentOf(path, top, env));
  return await Promise.all(all);
}

async function deploymentOf(
  path: string,
  top: Table,
  environment: string | undefined,
): Promise<Deployment> {
  const own = environment === undefined ? top : tableOf(tableOf(top.env)[environment]);
  // Wrangler's environments inherit the fields that are read with this function, and no others.
  const inherited = (field: string) => own[field] ?? top[field];
  const routes = [inherited("routes") ?? [], inherited("route") ?? []].flat();
  const services = tablesOf(own.services).map(({ binding, service }) => ({
    name: textOf(binding) ?? "",
    service: textOf(service),
  }));
  const fetchers = FETCHERS.flatMap((field) => tablesOf(own[field]));
  const assets = tableOf(inherited("assets"));
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
    routes: routes.flatMap(toRoute),
    workersDev: booleanOf(inherited("workers_dev")),
    previewUrls: booleanOf(inherited("preview_urls")),
    cache: tableOf(inherited("cache")).enabled === true,
    compatibilityDate: textOf(inherited("compatibility_date")),
    compatibilityFlags: textsOf(inherited("compatibility_flags")),
    vars: tableOf(own.vars),
    requiredSecrets: Array.isArray(required) ? textsOf(required) : undefined,
    fetchers: new Set([...services, assets, ...fetchers].map(bindingOf)),
    services,
    rateLimits: [...tablesOf(own.ratelimits), ...olderRateLimits].map(({ name, simple }) => ({
      name: textOf(name) ?? "",
      period: tableOf(simple).period,
    })),
    objects: objectsOf(own),
    topLevelObjects: objectsOf(top).map(({ name }) => name),
    classes: classesOf(inherited("migrations"), inherited("exports")),
    misplaced: [
      ...misplacedFields(basename(path), own, inherited, environment),
      ...varNameWarnings(own, environment),
      ...routeFieldFindings(basename(path), routes),
    ],
  };
}

function nameOf(top: Table, own: Table, environment: string | undefined): string | undefined {
  const name = textOf(top.name);
  return environment === undefined
    ? name
    : (textOf(own.name) ?? (name && `${name}-${environment}`));
}

function objectsOf(table: Table): ObjectBinding[] {
  return tablesOf(tableOf(table.durable_objects).bindings).map((binding) => ({
    name: textOf(binding.name) ?? "",
    className: textOf(binding.class_name),
    scriptName: textOf(binding.script_name),
  }));
}

function toRoute(route: unknown): Route[] {
  if (typeof route === "string")
    return route === "" ? [] : [{ pattern: route, customDomain: false }];
  const { pattern, custom_domain } = tableOf(route);
  if (typeof pattern !== "string") return [];
  return [{ pattern, customDomain: custom_domain === true }];
}

function bindingOf(table: Table | { readonly name: string }): string {
  return ("binding" in table ? textOf(table.binding) : textOf(table.name)) ?? "";
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

/** The environments of wrangler's configuration, or a fault if it cannot be read. */
type LoadedDeployments =
  | { readonly deployments: readonly Deployment[] }
  | { readonly fault: Finding };

/**
 * Reads wrangler's configuration as wrangler reads it.
 *
 * @param file the path of Weir's configuration
 * @param wranglerFile the path of wrangler's configuration; by default, the file that belongs to `file`
 * @returns one deployment for the top level and for each environment; none if there is no file
 */
export async function loadDeployments(
  file: string,
  wranglerFile: string | undefined = findWranglerFile(file),
): Promise<LoadedDeployments> {
  if (wranglerFile === undefined) return { deployments: [] };
  try {
    return {
      deployments: await deploymentsOf(wranglerFile, await parseWranglerFile(wranglerFile)),
    };
  } catch (error) {
    return {
      fault: {
        code: "wrangler-unread",
        severity: "fault",
        file: basename(wranglerFile),
        path: "",
        message: `The file cannot be read: ${error instanceof Error ? error.message : String(error)}`,
        cure: "Correct the file at this place",
      },
    };
  }
}
