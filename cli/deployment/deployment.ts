import { basename, dirname } from "node:path";
import type { LocalFinding } from "../finding.ts";
import { type MainModule, readMainModule } from "./main-module.ts";
import { classesOf, type StorageOfClass } from "./migrations.ts";
import { misplacedFields } from "./misplaced.ts";
import { routeFieldFindings } from "./route-fields.ts";
import { varNameWarnings } from "./var-names.ts";
import { isTable, type Table } from "./wrangler-file.ts";

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
export async function deploymentsOf(path: string, top: Table): Promise<Deployment[]> {
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
