import type { LocalFinding } from "../finding.ts";
import { isToml } from "./notation.ts";
import { isTable, type Table } from "./wrangler-file.ts";

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
export function misplacedFields(
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
export function otherTables(own: Table): PlacedTable[] {
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
