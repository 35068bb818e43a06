import {
  ACCESS_TEAM,
  ADMIN_READ_TOKEN,
  ADMIN_TOKEN,
  CONTROL_BINDING,
  COUNTERS_BINDING,
  KEY_SECRET,
  MIN_KEY_SECRET,
  MODE_VAR,
  PREFIX_VAR,
  readDeploymentMode,
} from "../../src/config/bindings.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { parseOriginUrl } from "../../src/config/origin.ts";
import { type Config, isPrefix, PREFIX } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import {
  type Deployment,
  isSecretListed,
  type ObjectBinding,
  textVarOf,
  URL_SECRET,
} from "./deployment.ts";
import { mayExport } from "./main-module.ts";
import { secretCommand, settingIn, valueIn } from "./notation.ts";

/**
 * Findings about the class of a binding, if the class belongs to this Worker.
 *
 * @param exported the name under which edge-weir exports the class
 */
function classFindings(
  { name, className, scriptName }: ObjectBinding,
  exported: "CounterObject" | "ControlObject",
  deployment: Deployment,
): LocalFinding[] {
  const { classes, main } = deployment;
  if (className === undefined) return [];
  if (scriptName !== undefined && scriptName !== deployment.name) return [];
  const storage = classes.get(className);
  const sqlite = settingIn(deployment.file, "new_sqlite_classes", [className]);
  const findings: (LocalFinding | false)[] = [
    storage === undefined && {
      code: "migration-missing",
      severity: "fault",
      path: "migrations",
      message: `No migration creates the class ${className} of ${name}`,
      cure: `Add a migration with a new tag and ${sqlite}`,
    },
    storage === "key-value" && {
      code: "migration-without-sqlite",
      severity: "fault",
      path: "migrations",
      message: `new_classes creates the class ${className} without SQLite, in which Weir stores ${exported === "CounterObject" ? "counters" : "statistics"}`,
      cure: `Write ${sqlite}. If the class is already deployed, add a new class instead, because Cloudflare cannot change its storage`,
    },
    !mayExport(main, className) && {
      code: "class-not-exported",
      severity: "fault",
      path: "main",
      message: `${main.path} does not export the class ${className} of ${name}`,
      cure: `Write export { ${exported}${className === exported ? "" : ` as ${className}`} } from "edge-weir" in ${main.path}`,
    },
  ];
  return findings.filter((finding) => finding !== false);
}

/**
 * Returns warnings about settings that let requests or responses bypass Weir or the zone's firewall.
 */
export function exposureWarnings(deployment: Deployment): LocalFinding[] {
  const { file, routes, workersDev, previewUrls, cache, compatibilityFlags, isPages } = deployment;
  // By default, workers_dev is on if there is no route, and preview_urls has the value of workers_dev.
  const answersOnWorkersDev = workersDev ?? (routes.length === 0 && !isPages);
  const andPreviews =
    previewUrls === undefined ? ", and on a URL for each version that was uploaded" : "";
  const why = workersDev === undefined ? ", because neither workers_dev nor a route is set" : "";
  const warnings: (LocalFinding | false)[] = [
    answersOnWorkersDev && {
      code: "workers-dev",
      severity: "warning",
      path: "workers_dev",
      message: `Weir also answers on workers.dev${andPreviews}${why}: the zone's firewall and rules with hosts do not apply there`,
      cure: `Write ${settingIn(file, "workers_dev", false)}`,
    },
    previewUrls === true && {
      code: "preview-urls",
      severity: "warning",
      path: "preview_urls",
      message:
        "Every version that was ever uploaded answers on its own URL, with the rules of that version",
      cure: `Write ${settingIn(file, "preview_urls", false)}`,
    },
    cache && {
      code: "workers-cache",
      severity: "warning",
      path: "cache.enabled",
      message: "The cache answers requests before Weir runs, and may store Weir's answers",
      cure: `Write ${settingIn(file, "cache", { enabled: false })}`,
    },
    compatibilityFlags.includes("global_fetch_strictly_public") && {
      code: "strictly-public-fetch",
      severity: "warning",
      path: "compatibility_flags",
      message:
        "On a route, Weir forwards requests to the front of the zone again, not to the origin",
      cure: "Remove global_fetch_strictly_public",
    },
  ];
  return warnings.filter((warning) => warning !== false);
}

/** Findings about the var that sets the mode of all rules of a deployment. */
export function modeFindings({ file, vars }: Deployment): LocalFinding[] {
  const mode = readDeploymentMode(vars);
  if (mode === "enforce") return [];
  const path = `vars.${MODE_VAR}`;
  const cure = `Remove ${MODE_VAR} from vars, unless this environment must not deny requests`;
  if (mode === undefined) {
    return [
      {
        code: "mode-invalid",
        severity: "fault",
        path,
        message: `${MODE_VAR} is not "enforce", "shadow" or "off", so the rules are enforced`,
        cure: `Write ${settingIn(file, MODE_VAR, "shadow")} or ${settingIn(file, MODE_VAR, "off")}, or remove the var`,
      },
    ];
  }
  const effect =
    mode === "off" ? "no rule applies" : "every rule is in shadow mode, so no request is denied";
  return [
    {
      code: "rules-not-enforced",
      severity: "warning",
      path,
      message: `${MODE_VAR} is "${mode}" here: ${effect}`,
      cure,
    },
  ];
}

const CLASS = "ControlObject";

/** With one of these, operators can read statistics. */
const CREDENTIALS = [ADMIN_TOKEN, ADMIN_READ_TOKEN, ACCESS_TEAM];

/** Findings about the Durable Object with the statistics and the overrides. It is optional. */
export function controlFindings(deployment: Deployment): LocalFinding[] {
  const { objects, file } = deployment;
  const binding = objects.find(({ name }) => name === CONTROL_BINDING);
  if (binding) return classFindings(binding, CLASS, deployment);
  const finding = {
    code: "control-unbound",
    severity: "warning",
    path: "durable_objects.bindings",
  } as const;
  const similar = objects.find(
    ({ name, className }) =>
      className === CLASS || nearestName(name, [CONTROL_BINDING]) !== undefined,
  );
  if (similar) {
    return [
      {
        ...finding,
        message: `${similar.name} looks like the binding of ${CLASS}, but Weir reads only ${CONTROL_BINDING}, so there are no statistics and no overrides`,
        cure: `Write ${settingIn(file, "name", CONTROL_BINDING)} in place of ${settingIn(file, "name", similar.name)}`,
      },
    ];
  }
  if (deployment.topLevelObjects.includes(CONTROL_BINDING)) {
    return [
      {
        ...finding,
        message: `${CONTROL_BINDING} is bound at the top level only, and environments do not inherit bindings, so this environment has no statistics and no overrides`,
        cure: `Add the binding to the environment too: ${valueIn(file, { name: CONTROL_BINDING, class_name: CLASS })}`,
      },
    ];
  }
  const credential = CREDENTIALS.find(
    (name) => isSecretListed(deployment, name) || textVarOf(deployment, name) !== undefined,
  );
  if (credential === undefined) return [];
  return [
    {
      ...finding,
      message: `${credential} is set, but no namespace is bound as ${CONTROL_BINDING}, so operators see no statistics and cannot set overrides`,
      cure: `Add ${valueIn(file, { name: CONTROL_BINDING, class_name: CLASS })} to durable_objects.bindings, add a migration with a new tag and ${settingIn(file, "new_sqlite_classes", [CLASS])}, and write export { ${CLASS} } from "edge-weir" in ${deployment.main.path ?? "the main module"}`,
    },
  ];
}

/**
 * The oldest compatibility date that Weir supports. With an older date, requests cannot wait for a call
 * that another request has made (`handle_cross_request_promise_resolution`).
 */
export const MIN_DATE = "2024-10-14";

/** The periods of Cloudflare's own rate limiters, in seconds. */
const PERIODS = [10, 60];

/** Findings about the main module, the compatibility date and Cloudflare's own rate limiter. */
export function workerFindings(config: Config, deployment: Deployment): LocalFinding[] {
  return [
    ...mainFindings(deployment),
    ...compatibilityFindings(deployment),
    ...nativeLimiterFindings(config, deployment),
  ];
}

function mainFindings({ file, main, isPages }: Deployment): LocalFinding[] {
  if (isPages) return [];
  const fault = { code: "main-missing", severity: "fault", path: "main" } as const;
  if (main.path === undefined) {
    return [
      {
        ...fault,
        message: "No main module is named, so nothing runs Weir",
        cure: `Write ${settingIn(file, "main", "src/worker.ts")}, the module that exports weir(config)`,
      },
    ];
  }
  if (main.text !== undefined || main.kind === "other") return [];
  const message = `There is no file ${main.path}`;
  return main.kind === "javascript"
    ? [{ ...fault, severity: "warning", message, cure: "Build the Worker first, or correct main" }]
    : [{ ...fault, message, cure: "Correct main, or create the file" }];
}

function compatibilityFindings(deployment: Deployment): LocalFinding[] {
  const { compatibilityDate: date } = deployment;
  const finding = {
    code: "compatibility-date",
    severity: "fault",
    path: "compatibility_date",
  } as const;
  const cure = `Write ${settingIn(deployment.file, "compatibility_date", MIN_DATE)} or a later date`;
  if (date === undefined) {
    // Vite's plugin and the option --compatibility-date set a date that the file does not show.
    const isKnown = deployment.main.path === undefined || deployment.main.kind === "other";
    const message =
      "No compatibility date is set, so wrangler deploy fails, unless it has the option --compatibility-date";
    return deployment.isPages || isKnown
      ? []
      : [{ ...finding, severity: "warning", message, cure }];
  }
  if (!isDate(date)) {
    return [
      { ...finding, message: `The compatibility date ${date} is no date such as 2026-01-31`, cure },
    ];
  }
  // The dates have the form of ISO 8601, so the order of the texts is the order of the dates.
  if (date >= MIN_DATE) return [];
  const message = `With the compatibility date ${date}, requests cannot share calls to the store`;
  return [{ ...finding, message, cure }];
}

function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  // Date reads 30 February as 2 March.
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

function nativeLimiterFindings({ nativeLimiter }: Config, deployment: Deployment): LocalFinding[] {
  if (!nativeLimiter) return [];
  const bound = deployment.rateLimits.find(({ name }) => name === nativeLimiter.binding);
  if (!bound) {
    return [
      {
        code: "native-limiter-unbound",
        severity: "fault",
        path: "ratelimits",
        message: `nativeLimiter names the binding ${nativeLimiter.binding}, but no rate limiter has this name`,
        cure: `Add ${valueIn(deployment.file, { name: nativeLimiter.binding, namespace_id: "1001", simple: { limit: 100, period: 60 } })} to ratelimits`,
      },
    ];
  }
  if (PERIODS.includes(bound.period as number)) return [];
  return [
    {
      code: "native-limiter-period",
      severity: "fault",
      path: "ratelimits",
      message: `The rate limiter ${bound.name} has the period ${String(bound.period)}, but Cloudflare accepts only 10 and 60 seconds`,
      cure: `Write ${settingIn(deployment.file, "period", 60)}`,
    },
  ];
}

/** The store that a deployment selects, as far as wrangler's configuration shows it. */
export function storeOf({ store }: Config, deployment: Deployment): Config["store"] {
  if (store !== undefined) return store;
  const hasUrl = textVarOf(deployment, URL_SECRET) || isSecretListed(deployment, URL_SECRET);
  return hasUrl ? "upstash" : "durable-object";
}

/** Findings about the place where Weir counts. */
export function storeFindings(config: Config, deployment: Deployment): LocalFinding[] {
  const store = storeOf(config, deployment);
  return [
    ...(store === "durable-object" ? objectFindings(config, deployment) : []),
    ...(store === "upstash" ? upstashFindings(deployment) : []),
    ...(store === "memory" ? [MEMORY] : []),
    ...settingFindings(deployment),
  ];
}

const MEMORY: LocalFinding = {
  code: "memory-store",
  severity: "warning",
  path: "",
  message:
    'With store: "memory", each isolate counts alone, so a client gets each limit many times',
  cure: 'Deploy with store: "upstash" or "durable-object"; "memory" is for tests',
};

function objectFindings({ store }: Config, deployment: Deployment): LocalFinding[] {
  const path = "durable_objects.bindings";
  const binding = deployment.objects.find(({ name }) => name === COUNTERS_BINDING);
  if (binding) return classFindings(binding, "CounterObject", deployment);
  const [similar] = deployment.objects.filter(
    ({ name, className }) =>
      className === "CounterObject" || nearestName(name, [COUNTERS_BINDING]) !== undefined,
  );
  const orRedis = store
    ? ""
    : `. For Upstash Redis, add ${URL_SECRET} and UPSTASH_REDIS_REST_TOKEN to secrets.required`;
  return [
    {
      code: "counters-unbound",
      severity: "fault",
      path,
      message: `Weir counts in Durable Objects here, but no namespace is bound as ${COUNTERS_BINDING}, so no request can be decided`,
      cure: similar
        ? `Write ${settingIn(deployment.file, "name", COUNTERS_BINDING)} in place of ${settingIn(deployment.file, "name", similar.name)}`
        : `Add ${valueIn(deployment.file, { name: COUNTERS_BINDING, class_name: "CounterObject" })} to ${path}, which environments do not inherit${orRedis}`,
    },
  ];
}

function upstashFindings(deployment: Deployment): LocalFinding[] {
  const url = textVarOf(deployment, URL_SECRET);
  if (url === undefined || parseOriginUrl(url)) return [];
  return [
    {
      code: "upstash-url-invalid",
      severity: "fault",
      path: `vars.${URL_SECRET}`,
      message: `${URL_SECRET} is not an http or https URL, so no request can be decided`,
      cure: "Copy the REST URL from the database's page at Upstash, such as https://name.upstash.io",
    },
  ];
}

function settingFindings(deployment: Deployment): LocalFinding[] {
  const { file, environment, vars } = deployment;
  const prefix = vars[PREFIX_VAR];
  const badPrefix =
    prefix !== undefined &&
    prefix !== "" &&
    !(typeof prefix === "string" && isPrefix(prefix.trim()));
  const secret = vars[KEY_SECRET];
  const badSecret =
    secret !== undefined &&
    secret !== "" &&
    !(typeof secret === "string" && secret.trim().length >= MIN_KEY_SECRET);
  const findings: (LocalFinding | false)[] = [
    badPrefix && {
      code: "prefix-invalid",
      severity: "fault",
      path: `vars.${PREFIX_VAR}`,
      message: `${PREFIX_VAR} is not a text of ${PREFIX}, so no request can be decided`,
      cure: `Write a prefix such as ${settingIn(file, PREFIX_VAR, `weir-${environment ?? "production"}`)}`,
    },
    badSecret && {
      code: "key-secret-short",
      severity: "fault",
      path: `vars.${KEY_SECRET}`,
      message: `${KEY_SECRET} is not a text of at least ${MIN_KEY_SECRET} characters, so no request can be decided`,
      cure: `Remove it from vars, and run openssl rand -base64 32 | ${secretCommand(KEY_SECRET, environment)}`,
    },
  ];
  return findings.filter((finding) => finding !== false);
}
