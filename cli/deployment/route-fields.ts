import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { LocalFinding } from "../finding.ts";
import { settingIn } from "./notation.ts";
import { isTable } from "./wrangler-file.ts";

const FIELDS = ["pattern", "zone_name", "zone_id", "custom_domain", "enabled", "previews_enabled"];

/**
 * Returns the findings about routes that are tables. Wrangler refuses a table without a zone, unless the
 * route is a custom domain.
 *
 * @param file the name of wrangler's file
 */
export function routeFieldFindings(file: string, routes: readonly unknown[]): LocalFinding[] {
  return routes.filter(isTable).flatMap((route): LocalFinding[] => {
    const pattern = typeof route.pattern === "string" ? route.pattern : undefined;
    if (pattern === undefined) return [];
    if (["zone_name", "zone_id", "custom_domain"].some((field) => field in route)) return [];
    const unknown = Object.keys(route).filter((field) => !FIELDS.includes(field));
    const [wrong, meant] =
      unknown
        .map((field) => [field, nearestName(field, FIELDS)] as const)
        .find(([, field]) => field !== undefined) ?? [];
    return [
      {
        code: "route-without-zone",
        severity: "fault",
        path: "routes",
        message: `The route ${pattern} is a table without zone_name, zone_id and custom_domain, so wrangler refuses it`,
        cure: meant
          ? `Write ${meant} in place of ${wrong}`
          : `Add ${settingIn(file, "zone_name", "example.com")} with the name of the zone, or ${settingIn(file, "custom_domain", true)}`,
      },
    ];
  });
}
