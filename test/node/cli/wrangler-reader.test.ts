import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type Unstable_Config,
  unstable_getDurableObjectClassNameToUseSQLiteMap,
  unstable_readConfig,
} from "wrangler";
import { type Deployment, loadDeployments } from "../../../cli/deployment/deployment.ts";
import { temporaryFolder } from "./run-weir.ts";

const TOP = `name = "shop"
main = "src/worker.ts"
compatibility_date = "2026-11-01"
compatibility_flags = ["no_nodejs_compat"]
workers_dev = false
preview_urls = true
routes = ["a.example.com/*", { pattern = "b.example.com", custom_domain = true }]
[vars]
ORIGIN_URL = "https://origin.example.com"
[secrets]
required = ["TOKEN"]
[cache]
enabled = true
[[services]]
binding = "API"
service = "api"
[[ratelimits]]
name = "NATIVE"
namespace_id = "1"
simple = { limit = 5, period = 60 }
[[durable_objects.bindings]]
name = "COUNTERS"
class_name = "CounterObject"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["CounterObject"]
`;

const OWN = `[env.staging]
name = "other"
main = "src/other.ts"
compatibility_date = "2026-10-01"
compatibility_flags = []
workers_dev = true
preview_urls = false
routes = []
vars = { WEIR_PREFIX = "staging" }
secrets = { required = [] }
services = [{ binding = "OWN", service = "own" }]
cache = { enabled = false }
migrations = [{ tag = "v1", new_classes = ["Other"] }]
[[env.staging.durable_objects.bindings]]
name = "COUNTERS"
class_name = "Other"
script_name = "elsewhere"
`;

const RENAMED = `[[migrations]]
tag = "v2"
new_classes = ["Second", "Third"]
[[migrations]]
tag = "v3"
renamed_classes = [{ from = "CounterObject", to = "Counters" }]
deleted_classes = ["Second"]
[env.staging]
migrations = []
[env.staging.exports]
CounterObject = { type = "durable-object", storage = "sqlite" }
Incoming = { type = "durable-object", state = "expecting-transfer", storage = "legacy-kv", transfer_from = "b" }
Old = { type = "durable-object", state = "renamed", renamed_to = "CounterObject" }
Gone = { type = "durable-object", state = "deleted" }
Entry = { type = "worker" }
`;

const JSONC = `{
  // A comment, and a comma at the end of a list.
  "name": "shop", "main": "worker.ts", "compatibility_date": "2026-11-01",
  "route": "c.example.com/*",
  "env": { "staging": { "route": "d.example.com/*", "services": [], }, "plain": {} },
}`;

/** Returns the same fields of a deployment as {@link fieldsOfWrangler}. */
function fieldsOf(folder: string, deployment: Deployment): object {
  const { name, main, routes, workersDev, previewUrls, cache, compatibilityDate } = deployment;
  return {
    name,
    main: main.path && join(folder, main.path),
    routes: routes.map(({ pattern }) => pattern),
    workersDev,
    previewUrls,
    cache,
    compatibilityDate,
    compatibilityFlags: deployment.compatibilityFlags,
    vars: deployment.vars,
    requiredSecrets: deployment.requiredSecrets,
    services: deployment.services.map((each) => [each.name, each.service]),
    rateLimits: deployment.rateLimits,
    objects: deployment.objects.map((each) => [each.name, each.className, each.scriptName]),
    classes: new Map([...deployment.classes].map(([name, { sqlite }]) => [name, sqlite])),
  };
}

/** Reads the fields of an environment with wrangler. An empty name is the top level. */
function fieldsOfWrangler(path: string, env: string): object {
  const config: Unstable_Config = unstable_readConfig(
    { config: path, env },
    { hideWarnings: true },
  );
  return {
    name: config.name,
    main: config.main,
    routes: [...(config.routes ?? []), ...(config.route ? [config.route] : [])].map((route) =>
      typeof route === "string" ? route : route.pattern,
    ),
    workersDev: config.workers_dev,
    previewUrls: config.preview_urls,
    cache: config.cache?.enabled === true,
    compatibilityDate: config.compatibility_date,
    compatibilityFlags: config.compatibility_flags,
    vars: config.vars,
    requiredSecrets: config.secrets?.required,
    services: (config.services ?? []).map(({ binding, service }) => [binding, service]),
    rateLimits: config.ratelimits.map(({ name }) => name),
    objects: config.durable_objects.bindings.map((each) => [
      each.name,
      each.class_name,
      each.script_name,
    ]),
    classes: unstable_getDurableObjectClassNameToUseSQLiteMap(config.migrations, config.exports),
  };
}

// Loading wrangler can take longer than the time limit of a test.
beforeAll(async () => {
  await import("wrangler");
});

describe("the check reads wrangler's configuration as wrangler does:", () => {
  test.each([
    ["an environment that inherits all fields", "wrangler.toml", `${TOP}[env.staging]\n`],
    ["an environment with its own fields", "wrangler.toml", TOP + OWN],
    ["classes that are renamed and deleted, and exports", "wrangler.toml", TOP + RENAMED],
    ["JSON with comments", "wrangler.jsonc", JSONC],
    ["almost no fields", "wrangler.toml", 'name = "a"\n[env.staging]\n[env.b]\nname = "c"\n'],
  ])("%s", async (_, file, content) => {
    await using folder = await temporaryFolder();
    await folder.write(file, content);
    const read = await loadDeployments(join(folder.path, "weir.config.ts"));
    if ("fault" in read) throw new Error(read.fault.message);
    const names = read.deployments.map(({ environment }) => environment ?? "");
    expect(names[0]).toBe("");
    expect(names.length).toBeGreaterThan(1);
    for (const deployment of read.deployments) {
      const expected = fieldsOfWrangler(join(folder.path, file), deployment.environment ?? "");
      expect(fieldsOf(folder.path, deployment)).toEqual(expected);
    }
  });
});
