import { relative } from "node:path";
import type { NewTemplate, Texts } from "./fields.ts";
import type { PackageManager } from "./package-manager.ts";

/** Returns the commands that start Weir, and that show its limit. */
export function nextSteps(options: {
  readonly folder: string;
  readonly packageManager: PackageManager;
  readonly isInstalled: boolean;
  readonly url: string;
  /** Whether the app answers /login only if its own code has this route. */
  readonly isOwnApp: boolean;
}): string {
  const { folder, packageManager, isInstalled, url, isOwnApp } = options;
  const path = relative(process.cwd(), folder);
  const enter = path === "" ? [] : [`cd ${/\s/.test(path) ? JSON.stringify(path) : path}`];
  const start = `${packageManager} run dev`;
  return `
Start Weir. This needs no account:

  ${[...enter, ...(isInstalled ? [] : [`${packageManager} install`]), start].join("\n  ")}

Then send six logins. The sixth gets 429${isOwnApp ? ", the others 404 if the app has no /login" : ""}:

  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\\n' -X POST ${url}/login; done
`;
}

/** Returns the values to check before the first deploy. */
export function beforeDeploy(
  template: NewTemplate,
  texts: Texts,
  packageManager: PackageManager,
): string {
  const { host, zone, origin, service } = texts;
  const target = {
    route: `in the zone ${zone}, in front of the zone's own origin`,
    "custom-domain": `in front of ${origin}`,
    service: `in front of the Worker ${service}`,
  }[template];
  return `\`${packageManager} run deploy\` puts Weir on ${host}, ${target}. To change this, edit wrangler.toml.`;
}
