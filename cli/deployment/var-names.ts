import { MODE_VAR, PREFIX_VAR } from "../../src/config/binding-names.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { LocalFinding } from "../finding.ts";
import { otherTables } from "./misplaced.ts";
import { isTable, type Table } from "./wrangler-file.ts";

/** The vars that Weir reads from wrangler's configuration, besides secrets. */
const VARS = [MODE_VAR, PREFIX_VAR, "ORIGIN_URL"];

/**
 * Returns warnings about Weir's vars with misspelt names, and about Weir's vars outside of the table
 * `vars`, which wrangler ignores.
 *
 * @param own the table of the top level or of the environment
 * @param environment the name of the environment; undefined for the top level
 */
export function varNameWarnings(own: Table, environment: string | undefined): LocalFinding[] {
  const vars = isTable(own.vars) ? own.vars : {};
  const place = environment === undefined ? "vars" : `env.${environment}.vars`;
  const misspelt = Object.keys(vars).flatMap((name): LocalFinding[] => {
    const meant = nearestVar(name);
    if (meant === undefined || meant === name || meant in vars) return [];
    return [
      {
        code: "var-misspelt",
        severity: "warning",
        path: `vars.${name}`,
        message: `Weir does not read the var ${name}`,
        cure: `Write ${meant}`,
      },
    ];
  });
  const outside = Object.keys(own).flatMap((name): LocalFinding[] => {
    const meant = isTable(own[name]) ? undefined : nearestVar(name);
    if (meant === undefined) return [];
    return [
      {
        code: "var-misplaced",
        severity: "warning",
        path: name,
        message: `${name} is not in vars, so wrangler does not pass it to the Worker`,
        cure: `Move it into ${place}${meant === name ? "" : `, as ${meant}`}`,
      },
    ];
  });
  const inTables = otherTables(own).flatMap(({ table, path }) =>
    VARS.filter((name) => name in table).map(
      (name): LocalFinding => ({
        code: "var-misplaced",
        severity: "warning",
        path: `${path}.${name}`,
        message: `${name} is in ${path} and not in ${place}, so wrangler does not pass it to the Worker`,
        cure: `Move the line below [${place}]`,
      }),
    ),
  );
  return [...misspelt, ...outside, ...inTables];
}

/** Returns the name of Weir's var that is most similar to a name; undefined if none is similar. */
function nearestVar(name: string): string | undefined {
  return VARS.includes(name) ? name : nearestName(name, VARS);
}
