import { KEY_SECRET, secretEffects } from "../../src/config/binding-names.ts";
import { printableSecretName } from "../../src/config/exempt.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { isTemplate } from "./environment.ts";
import { secretCommand } from "./notation.ts";
import { storeOf } from "./store.ts";
import { isSecretListed, TOKEN_SECRET, textVarOf, URL_SECRET } from "./vars.ts";

/** Secrets that Weir reads with any rules. */
const OWN_SECRETS = [TOKEN_SECRET, KEY_SECRET, "WEIR_ADMIN_TOKEN", "WEIR_ADMIN_READ_TOKEN"];

/** Returns warnings about secrets that may be missing, and about secrets that are written in the file. */
export function secretFindings(
  config: Config,
  deployment: Deployment,
  all: readonly Deployment[],
): LocalFinding[] {
  const { jwt } = config;
  const unread = jwt && "secret" in jwt && !readsClaims(config) ? jwt.secret : undefined;
  const named = [...secretEffects(config).keys()].filter((name) => name !== unread);
  const upstash = storeOf(config, deployment) === "upstash" ? [URL_SECRET, TOKEN_SECRET] : [];
  const unlisted = [...upstash, ...named].filter(
    (name) => !isSecretListed(deployment, name) && textVarOf(deployment, name) === undefined,
  );
  const written = [...OWN_SECRETS, ...named].filter((name) => textVarOf(deployment, name));
  const { environment } = deployment;
  const findings: (LocalFinding | false)[] = [
    !isTemplate(deployment, all) &&
      unlisted.length > 0 && {
        code: "secret-not-required",
        severity: "warning",
        path: "secrets.required",
        message: `Weir needs ${listOf(unlisted)}, but a deploy without ${unlisted.length === 1 ? "it" : "them"} would succeed`,
        cure: `Add ${unlisted.map((name) => JSON.stringify(printableSecretName(name))).join(", ")} to secrets.required, and set ${unlisted.length === 1 ? "it" : "each"} with ${commandFor(unlisted, environment)}`,
      },
    written.length > 0 && {
      code: "secret-in-vars",
      severity: "warning",
      path: "vars",
      message: `${listOf(written)} in vars can be read by everyone who can read the file`,
      cure: `Remove ${written.length === 1 ? "it" : "them"} from vars. For the deployed Worker, run ${commandFor(written, environment)}, and add the name to secrets.required. For wrangler dev, write it in .dev.vars`,
    },
  ];
  return findings.filter((finding) => finding !== false);
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
