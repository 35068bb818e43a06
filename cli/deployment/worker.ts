import {
  ACCESS_TEAM,
  ADMIN_READ_TOKEN,
  ADMIN_TOKEN,
  CONTROL_BINDING,
  COUNTERS_BINDING,
} from "../../src/config/bindings.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { parseOriginUrl } from "../../src/config/origin.ts";
import { hasConcurrent } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { found, type LocalFinding } from "../finding.ts";
import {
  type Deployment,
  isSecretListed,
  type ObjectBinding,
  textVarOf,
  URL_SECRET,
} from "./deployment.ts";
import { settingIn, valueIn } from "./wrangler-file.ts";

/**
 * The oldest compatibility date that Weir supports. With an older date, requests cannot wait for a call
 * that another request has made (`handle_cross_request_promise_resolution`).
 */
export const MIN_DATE = "2024-10-14";

/** The compatibility flag with which a Worker sees that a client hangs up. */
const SIGNAL_FLAG = "enable_request_signal";

/** Findings about the compatibility date and flags, Cloudflare's own rate limiter, and the data set of the use. */
export function* workerFindings(
  { nativeLimiter, rules, usage }: Config,
  { file, compatibilityDate: date, compatibilityFlags: flags, rateLimits, dataSets }: Deployment,
): Iterable<LocalFinding> {
  // The dates have the form of ISO 8601, so the order of the texts is the order of the dates.
  if (date !== undefined && date < MIN_DATE) {
    yield found(
      "compatibility-date",
      "compatibility_date",
      `With the compatibility date ${date}, requests cannot share calls to the store`,
      `Write ${settingIn(file, "compatibility_date", MIN_DATE)} or a later date`,
    );
  }
  const limited =
    rules.find((rule) => rule.for !== "programs" && hasConcurrent(rule)) ??
    rules.find(({ waitMs }) => waitMs > 0);
  if (limited && !flags.includes(SIGNAL_FLAG)) {
    yield found(
      "hang-ups-unseen",
      "compatibility_flags",
      `Weir does not see clients that hang up before their response, so their requests ${hasConcurrent(limited) ? "hold slots of" : "wait and count under"} the rule "${limited.name}" all the same`,
      `Write ${settingIn(file, "compatibility_flags", [...flags, SIGNAL_FLAG])}`,
    );
  }
  if (nativeLimiter && !rateLimits.includes(nativeLimiter.binding)) {
    const example = { namespace_id: "1001", simple: { limit: 100, period: 60 } };
    yield found(
      "native-limiter-unbound",
      "ratelimits",
      `nativeLimiter names the binding ${nativeLimiter.binding}, but no rate limiter has this name`,
      `Add ${valueIn(file, { name: nativeLimiter.binding, ...example })} to ratelimits`,
    );
  }
  if (usage && !dataSets.includes(usage.binding)) {
    yield found(
      "usage-unbound",
      "analytics_engine_datasets",
      `usage names the binding ${usage.binding}, but no data set has this name, so Weir writes no use by client`,
      `Add ${valueIn(file, { binding: usage.binding, dataset: "weir_usage" })} to analytics_engine_datasets`,
    );
  }
}

/** The store that a deployment selects, as far as wrangler's configuration shows it. */
export function storeOf({ store }: Config, deployment: Deployment): Config["store"] {
  if (store !== undefined) return store;
  const hasUrl = textVarOf(deployment, URL_SECRET) || isSecretListed(deployment, URL_SECRET);
  return hasUrl ? "upstash" : "durable-object";
}

/** Findings about the store. */
export function* storeFindings(config: Config, deployment: Deployment): Iterable<LocalFinding> {
  const store = storeOf(config, deployment);
  if (store === "durable-object") yield* countersFindings(config, deployment);
  const url = store === "upstash" ? textVarOf(deployment, URL_SECRET) : undefined;
  if (url !== undefined && !parseOriginUrl(url)) {
    yield found(
      "upstash-url-invalid",
      `vars.${URL_SECRET}`,
      `${URL_SECRET} is not an http or https URL, so no request can be decided`,
      "Copy the REST URL from the database's page at Upstash, such as https://name.upstash.io",
    );
  }
  if (store === "memory") {
    yield found(
      "memory-store",
      "",
      'With store: "memory", each isolate counts alone, so a client gets each limit many times',
      'Deploy with store: "upstash" or "durable-object"; "memory" is for tests',
    );
  }
}

function* countersFindings({ store }: Config, deployment: Deployment): Iterable<LocalFinding> {
  const { objects, file } = deployment;
  const path = "durable_objects.bindings";
  const binding = objects.find(({ name }) => name === COUNTERS_BINDING);
  if (binding) {
    yield* storageFindings(binding, deployment);
    return;
  }
  const similar = objects.find(
    ({ name, className }) =>
      className === "CounterObject" || nearestName(name, [COUNTERS_BINDING]) !== undefined,
  );
  const orRedis = store
    ? ""
    : `. For Upstash Redis, add ${URL_SECRET} and UPSTASH_REDIS_REST_TOKEN to secrets.required`;
  yield found(
    "counters-unbound",
    path,
    `Weir counts in Durable Objects here, but no namespace is bound as ${COUNTERS_BINDING}, so no request can be decided`,
    similar
      ? `Write ${settingIn(file, "name", COUNTERS_BINDING)} in place of ${settingIn(file, "name", similar.name)}`
      : `Add ${valueIn(file, { name: COUNTERS_BINDING, class_name: "CounterObject" })} to ${path}, which environments do not inherit${orRedis}`,
  );
}

/** Reports a class whose objects have no SQLite, because all calls to them would fail. */
function* storageFindings(binding: ObjectBinding, deployment: Deployment): Iterable<LocalFinding> {
  const { name, className = "" } = binding;
  const { file, classes } = deployment;
  const declared = isOwn(binding, deployment) ? classes.get(className) : undefined;
  if (!declared || declared.sqlite) return;
  const [path, reason, setting] =
    declared.by === "exports"
      ? [`exports.${className}.storage`, "exports declares", settingIn(file, "storage", "sqlite")]
      : [
          "migrations",
          "new_classes creates",
          settingIn(file, "new_sqlite_classes", [declared.createdAs]),
        ];
  yield found(
    "class-without-sqlite",
    path,
    `${reason} the class ${className} of ${name} without SQLite, which Weir needs`,
    `Write ${setting}. If the class is already deployed, add a new class instead, because Cloudflare cannot change its storage`,
  );
}

/** Reports bound classes of this Worker that do not exist for Cloudflare, because a deploy would fail. */
export function* classFindings(_config: Config, deployment: Deployment): Iterable<LocalFinding> {
  for (const binding of deployment.objects) {
    const { name, className } = binding;
    if (className === undefined || !isOwn(binding, deployment)) continue;
    if (deployment.classes.has(className)) continue;
    yield found(
      "class-undeclared",
      deployment.hasMigrations ? "migrations" : "exports",
      `${name} binds the class ${className}, but neither exports nor migrations declares it, so Cloudflare refuses a deploy`,
      sentence(declarationOf(className, deployment)),
    );
  }
}

/** Whether a binding is of a class of the Worker itself. */
function isOwn({ scriptName }: ObjectBinding, { name }: Deployment): boolean {
  return scriptName === undefined || scriptName === name;
}

/** Says how to declare a class. Cloudflare refuses a Worker that has both `exports` and `migrations`. */
function declarationOf(className: string, { file, hasMigrations }: Deployment): string {
  return hasMigrations
    ? `add a migration with a new tag and ${settingIn(file, "new_sqlite_classes", [className])}`
    : `write ${settingIn(file, className, { type: "durable-object", storage: "sqlite" })} in exports`;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const CONTROL_CLASS = "ControlObject";

/** Each of these vars and secrets lets operators read statistics. */
const CREDENTIALS = [ADMIN_TOKEN, ADMIN_READ_TOKEN, ACCESS_TEAM];

/** Findings about the control object, the optional Durable Object with statistics and overrides. */
export function* controlFindings(_config: Config, deployment: Deployment): Iterable<LocalFinding> {
  const { objects, file, topLevelObjects, classes, main } = deployment;
  const path = "durable_objects.bindings";
  const binding = objects.find(({ name }) => name === CONTROL_BINDING);
  if (binding) {
    yield* storageFindings(binding, deployment);
    return;
  }
  const similar = objects.find(
    ({ name, className }) =>
      className === CONTROL_CLASS || nearestName(name, [CONTROL_BINDING]) !== undefined,
  );
  const added = valueIn(file, { name: CONTROL_BINDING, class_name: CONTROL_CLASS });
  const declaration = classes.has(CONTROL_CLASS)
    ? ""
    : `, ${declarationOf(CONTROL_CLASS, deployment)}`;
  const reason =
    CREDENTIALS.find(
      (name) => isSecretListed(deployment, name) || textVarOf(deployment, name) !== undefined,
    ) ??
    (topLevelObjects.includes(CONTROL_BINDING) && `${CONTROL_BINDING} of the top level`);
  if (similar) {
    yield found(
      "control-unbound",
      path,
      `${similar.name} looks like the binding of ${CONTROL_CLASS}, but Weir reads only ${CONTROL_BINDING}, so there are no statistics and no overrides`,
      `Write ${settingIn(file, "name", CONTROL_BINDING)} in place of ${settingIn(file, "name", similar.name)}`,
    );
  } else if (reason) {
    yield found(
      "control-unbound",
      path,
      `${reason} is set, but no namespace is bound as ${CONTROL_BINDING} here, so operators see no statistics and cannot set overrides`,
      `Add ${added} to ${path}, which environments do not inherit${declaration}, and write export { ${CONTROL_CLASS} } from "edge-weir" in ${main.path ?? "the main module"}`,
    );
  }
}

/** Warnings about settings that let requests or responses bypass Weir or the zone's firewall. */
export function* exposureWarnings(config: Config, deployment: Deployment): Iterable<LocalFinding> {
  const { file, routes, workersDev, previewUrls, cache, compatibilityFlags, isPages } = deployment;
  // By default, workers_dev is on if there is no route, and preview_urls has the value of workers_dev.
  const isOnlyHost = routes.length === 0 && !isPages;
  const isMeant = workersDev && isOnlyHost && config.rules.every(({ match }) => !match.hosts);
  if ((workersDev ?? isOnlyHost) && !isMeant) {
    const previews =
      previewUrls === undefined ? ", and on a URL for each version that was uploaded" : "";
    const why = workersDev === undefined ? ", because neither workers_dev nor a route is set" : "";
    yield found(
      "workers-dev",
      "workers_dev",
      `Weir also answers on workers.dev${previews}${why}: the zone's firewall and rules with hosts do not apply there`,
      `Write ${settingIn(file, "workers_dev", false)}${workersDev === undefined ? `, or ${settingIn(file, "workers_dev", true)} if the Worker has no other host` : ""}`,
    );
  }
  if (previewUrls === true) {
    yield found(
      "preview-urls",
      "preview_urls",
      "Every version that was ever uploaded answers on its own URL, with the rules of that version",
      `Write ${settingIn(file, "preview_urls", false)}`,
    );
  }
  if (cache) {
    yield found(
      "workers-cache",
      "cache.enabled",
      "The cache answers requests before Weir runs, and may store Weir's answers",
      `Write ${settingIn(file, "cache", { enabled: false })}`,
    );
  }
  if (compatibilityFlags.includes("global_fetch_strictly_public")) {
    yield found(
      "strictly-public-fetch",
      "compatibility_flags",
      "On a route, Weir forwards requests to the front of the zone again, not to the origin",
      "Remove global_fetch_strictly_public",
    );
  }
}
