import { PREFIX_VAR } from "../../src/config/binding-names.ts";
import type { Config } from "../../src/config/schema.ts";
import type { Finding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { settingIn } from "./notation.ts";
import { storeOf } from "./store.ts";
import { textVarOf, URL_SECRET } from "./vars.ts";

/**
 * Warnings about environments that would count in the same keys of one Redis database. Durable
 * Objects cannot collide, because each environment is a Worker with its own objects.
 */
export function sharedPrefixWarnings(
  config: Config,
  deployments: readonly Deployment[],
  checks: (deployment: Deployment) => boolean,
): Finding[] {
  const onRedis = deployments.filter((each) => storeOf(config, each) === "upstash");
  return onRedis.flatMap((deployment, index) => {
    const other = onRedis.find((each, position) => {
      // Each pair is reported once, unless only one of the two environments is checked.
      const isReported = position > index && checks(each);
      return each !== deployment && !isReported && mayShare(config, deployment, each);
    });
    if (!other || !checks(deployment)) return [];
    const prefix = prefixOf(config, deployment);
    const urls = [deployment, other].map((each) => textVarOf(each, URL_SECRET));
    const condition = urls.includes(undefined) ? "If both use one database, they" : "They";
    return [
      {
        code: "shared-prefix",
        severity: "warning",
        file: deployment.file,
        environment: deployment.environment,
        path: `vars.${PREFIX_VAR}`,
        message: `This environment and ${nameOf(other)} have the prefix ${prefix}. ${condition} count the same clients in the same counters`,
        cure: `Write ${settingIn(deployment.file, PREFIX_VAR, `${prefix}-${deployment.environment ?? "production"}`)} in the vars of this environment`,
      },
    ];
  });
}

function mayShare(config: Config, one: Deployment, other: Deployment): boolean {
  const [url, otherUrl] = [textVarOf(one, URL_SECRET), textVarOf(other, URL_SECRET)];
  const sameDatabase = url === undefined || otherUrl === undefined || url === otherUrl;
  return sameDatabase && prefixOf(config, one) === prefixOf(config, other);
}

function prefixOf({ prefix }: Config, deployment: Deployment): string {
  return textVarOf(deployment, PREFIX_VAR) ?? prefix;
}

function nameOf({ environment }: Deployment): string {
  return environment === undefined ? "the top level" : `the environment ${environment}`;
}
