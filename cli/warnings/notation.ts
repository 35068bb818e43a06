import { routeOfOthers } from "../../src/config/explain/route-notation.ts";
import { parseRoute } from "../../src/config/route.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { LocalFinding } from "../finding.ts";

/**
 * Warnings about paths in the notation of another framework, such as `/users/[id]`. Such a path is
 * valid, but it matches only the text as it is written.
 */
export function notationWarnings({ name, match }: Rule, place: string): LocalFinding[] {
  return [
    { paths: match.paths, path: `${place}.match.paths` },
    { paths: match.except?.paths, path: `${place}.match.except.paths` },
  ].flatMap(({ paths = [], path }) =>
    paths.flatMap((route): LocalFinding[] => {
      const meant = routeOfOthers(route);
      if (meant === undefined || !parseRoute(meant)) return [];
      return [
        {
          code: "path-notation",
          severity: "warning",
          path,
          message: `In the rule "${name}", ${route} matches only this text, because it has no parameter in Hono's notation`,
          cure: `Write ${JSON.stringify(meant)}`,
        },
      ];
    }),
  );
}
