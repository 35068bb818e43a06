import {
  KEY_SECRET,
  MIN_KEY_SECRET,
  MODE_VAR,
  PREFIX_VAR,
  readDeploymentMode,
  secretEffects,
} from "../../src/config/bindings.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { type Config, isPrefix, PREFIX } from "../../src/config/schema.ts";
import { printableSecretName } from "../../src/config/tiers.ts";
import { found, type LocalFinding } from "../finding.ts";
import {
  type Deployment,
  isSecretListed,
  placeOf,
  TOKEN_SECRET,
  textVarOf,
  URL_SECRET,
} from "./deployment.ts";
import { isTemplate } from "./environment.ts";
import { storeOf } from "./worker.ts";
import { secretCommand, settingIn } from "./wrangler-file.ts";

/** The vars that Weir reads from wrangler's configuration, besides secrets. */
const VARS = [MODE_VAR, PREFIX_VAR, "ORIGIN_URL"];

/** Findings about the names and values of Weir's vars. */
export function* varFindings(_config: Config, deployment: Deployment): Iterable<LocalFinding> {
  const { file, environment, vars } = deployment;
  for (const name of Object.keys(vars)) {
    const meant = VARS.includes(name) ? undefined : nearestName(name, VARS);
    if (meant === undefined || meant in vars) continue;
    const message = `Weir does not read the var ${name}`;
    yield found("var-misspelt", `vars.${name}`, message, `Write ${meant}`);
  }
  const prefix = vars[PREFIX_VAR];
  if (prefix && !(typeof prefix === "string" && isPrefix(prefix.trim()))) {
    yield found(
      "prefix-invalid",
      `vars.${PREFIX_VAR}`,
      `${PREFIX_VAR} is not a text of ${PREFIX}, so no request can be decided`,
      `Write a prefix such as ${settingIn(file, PREFIX_VAR, `weir-${environment ?? "production"}`)}`,
    );
  }
  const secret = vars[KEY_SECRET];
  if (secret && !(typeof secret === "string" && secret.trim().length >= MIN_KEY_SECRET)) {
    yield found(
      "key-secret-short",
      `vars.${KEY_SECRET}`,
      `${KEY_SECRET} is not a text of at least ${MIN_KEY_SECRET} characters, so no request can be decided`,
      `Remove it from vars, and run openssl rand -base64 32 | ${secretCommand(KEY_SECRET, environment)}`,
    );
  }
  const mode = readDeploymentMode(vars);
  if (mode === undefined) {
    yield found(
      "mode-invalid",
      `vars.${MODE_VAR}`,
      `${MODE_VAR} is not "enforce", "shadow" or "off", so the rules are enforced`,
      `Write ${settingIn(file, MODE_VAR, "shadow")} or ${settingIn(file, MODE_VAR, "off")}, or remove the var`,
    );
  } else if (mode !== "enforce") {
    const effect =
      mode === "off" ? "no rule applies" : "every rule is in shadow mode, so no request is denied";
    yield found(
      "rules-not-enforced",
      `vars.${MODE_VAR}`,
      `${MODE_VAR} is "${mode}" here: ${effect}`,
      `Remove ${MODE_VAR} from vars, unless this environment must not deny requests`,
    );
  }
}

/** The secrets that Weir reads under any rules. */
const OWN_SECRETS = [TOKEN_SECRET, KEY_SECRET, "WEIR_ADMIN_TOKEN", "WEIR_ADMIN_READ_TOKEN"];

/** Warns of secrets that may be missing, and of secrets that are written in wrangler's file. */
export function* secretWarnings(
  config: Config,
  deployment: Deployment,
  all: readonly Deployment[],
): Iterable<LocalFinding> {
  const { jwt } = config;
  const unread = jwt && "secret" in jwt && !readsClaims(config) ? jwt.secret : undefined;
  const named = [...secretEffects(config).keys()].filter((name) => name !== unread);
  const upstash = storeOf(config, deployment) === "upstash" ? [URL_SECRET, TOKEN_SECRET] : [];
  const unlisted = [...upstash, ...named].filter(
    (name) => !isSecretListed(deployment, name) && textVarOf(deployment, name) === undefined,
  );
  const { environment } = deployment;
  if (unlisted.length > 0 && !isTemplate(deployment, all)) {
    const [it, each] = unlisted.length === 1 ? ["it", "it"] : ["them", "each"];
    const quoted = unlisted.map((name) => JSON.stringify(printableSecretName(name))).join(", ");
    yield found(
      "secret-not-required",
      "secrets.required",
      `Weir needs ${listOf(unlisted)}, but a deploy without ${it} would succeed`,
      `Add ${quoted} to secrets.required, and set ${each} with ${commandFor(unlisted, environment)}`,
    );
  }
  const written = [...OWN_SECRETS, ...named].filter((name) => textVarOf(deployment, name));
  if (written.length > 0) {
    const it = written.length === 1 ? "it" : "them";
    yield found(
      "secret-in-vars",
      "vars",
      `${listOf(written)} in vars can be read by everyone who can read the file`,
      `Remove ${it} from vars. For the deployed Worker, run ${commandFor(written, environment)}, and add the name to secrets.required. For wrangler dev, write it in .dev.vars`,
    );
  }
}

/** Whether a rule needs a verified token. Without such a rule, Weir never reads the secret of `jwt`. */
function readsClaims({ rules }: Config): boolean {
  return rules.some(({ key, tiers }) =>
    [...key, ...(tiers?.by ?? [])].flat().some(({ kind }) => kind === "jwt"),
  );
}

function commandFor(names: readonly string[], environment: string | undefined): string {
  const [first = "NAME", ...others] = names;
  return secretCommand(others.length === 0 ? printableSecretName(first) : "NAME", environment);
}

function listOf(names: readonly string[]): string {
  return names.map(printableSecretName).join(", ");
}

/**
 * Warns of two environments that would count in the same keys of one Redis database. Durable Objects cannot collide,
 * because each environment is a Worker with its own objects.
 *
 * @param others the environments that this one is compared with
 */
export function* sharedPrefixWarnings(
  config: Config,
  deployment: Deployment,
  others: readonly Deployment[],
): Iterable<LocalFinding> {
  if (storeOf(config, deployment) !== "upstash") return;
  const prefix = textVarOf(deployment, PREFIX_VAR) ?? config.prefix;
  const url = textVarOf(deployment, URL_SECRET);
  const other = others.find((each) => {
    const otherUrl = textVarOf(each, URL_SECRET);
    const mayShareDatabase = url === undefined || otherUrl === undefined || url === otherUrl;
    return (
      storeOf(config, each) === "upstash" &&
      mayShareDatabase &&
      (textVarOf(each, PREFIX_VAR) ?? config.prefix) === prefix
    );
  });
  if (!other) return;
  const own = `${prefix}-${deployment.environment ?? "production"}`;
  yield found(
    "shared-prefix",
    `vars.${PREFIX_VAR}`,
    `This environment and ${placeOf(other)} have the prefix ${prefix}. If both use one database, they count the same clients in the same counters`,
    `Write ${settingIn(deployment.file, PREFIX_VAR, own)} in the vars of this environment`,
  );
}
