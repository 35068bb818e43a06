import {
  COUNTERS_BINDING,
  KEY_SECRET,
  MIN_KEY_SECRET,
  PREFIX_VAR,
} from "../../src/config/binding-names.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { parseOriginUrl } from "../../src/config/origin.ts";
import { type Config, isPrefix, PREFIX } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { secretCommand, settingIn, valueIn } from "./notation.ts";
import { classFindings } from "./object-class.ts";
import { isSecretListed, textVarOf, URL_SECRET } from "./vars.ts";

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
