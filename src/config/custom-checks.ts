import * as v from "valibot";
import { namedParts } from "./config-checks.ts";
import { faultText } from "./fault-text.ts";
import { listOfNames, shortened } from "./faults.ts";
import { isRecord, pathTo } from "./fields.ts";
import { type PlacedRule, placedRules } from "./rules.ts";

/** The groups of functions in `custom`. */
const GROUPS = ["keys", "costs", "settle", "responses"] as const;
type Group = (typeof GROUPS)[number];

/** The name of a function that a rule uses. */
interface FunctionUse {
  readonly group: Group;
  readonly name: string;
  readonly path: PlacedRule["path"];
}

/**
 * Checks that `custom` has a function for each `custom:NAME` of the rules. The check also runs if the
 * configuration has other faults, so that Weir reports all faults at once.
 */
export function checkCustomFunctions<Fields>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    const config: unknown = dataset.value;
    if (!isRecord(config)) return;
    const uses = functionUses(config);
    for (const group of GROUPS) {
      const names = customNames(config.custom, group);
      // The schema has reported that `custom` or the group is not an object.
      if (!names) continue;
      const present = new Set(names);
      // The explanation of the fault uses these names to suggest the nearest one.
      const expected = faultText(() => names.slice(0, MAX_COMPARED).join(", "));
      for (const { group: used, name, path } of uses) {
        if (used !== group || present.has(name)) continue;
        const message = noFunction(group, shortened(name), names, config.custom);
        addIssue({ path, input: name, expected, received: name, message });
      }
    }
  });
}

/** The explanation of a fault compares a misspelt name with at most this number of names. */
const MAX_COMPARED = 1000;

function noFunction(group: Group, name: string, names: readonly string[], custom: unknown): string {
  return faultText(() => {
    const other = GROUPS.find((each) => customNames(custom, each)?.includes(name));
    if (other) {
      const [single, ...more] = names;
      const cure =
        single === undefined || more.length > 0
          ? `Move it into custom.${group}, or write the name of another function`
          : `Write custom:${shortened(single)}, or move ${name} into custom.${group}`;
      return `custom:${name} needs a function in custom.${group}, but ${name} is in custom.${other}. ${cure}`;
    }
    const [use, argument] = {
      keys: ["key", "request"],
      costs: ["cost", "request"],
      settle: ["settle:", "response"],
      responses: ["response", "denial"],
    }[group];
    const present = names.length > 0 ? `only ${listOfNames(names)}` : "no functions";
    const cure =
      `the ${use} custom:${name} needs a function in custom.${group}, which has ${present}. ` +
      `Add custom: { ${group}: { ${name}: (${argument}) => … } } beside rules`;
    return group === "keys"
      ? `${cure}, or, if only programs use the rule, add for: "programs" to it`
      : cure;
  });
}

/** Returns the names of the functions in a group; undefined if they are not an object. */
function customNames(custom: unknown, group: Group): string[] | undefined {
  if (custom === undefined) return [];
  const functions = isRecord(custom) ? (custom[group] ?? {}) : undefined;
  if (functions instanceof Map) return [...functions.keys()];
  return isRecord(functions) ? Object.keys(functions) : undefined;
}

function functionUses(config: Record<string, unknown>): FunctionUse[] {
  const keys = namedParts(config)
    .filter(({ kind }) => kind === "custom")
    .map(({ name, path }) => ({ group: "keys" as const, name, path }));
  return [...keys, ...costUses(config), ...responseUses(config)];
}

/** Returns the functions in the costs of all rules. A cost without a fault is already parsed. */
function costUses(config: Record<string, unknown>): FunctionUse[] {
  return placedRules(config).flatMap(({ rule, path }) => {
    if (!isRecord(rule) || !isRecord(rule.cost) || rule.for === "programs") return [];
    const { cost } = rule;
    const { before, settle } = cost;
    const at: FunctionUse["path"] = [...path, pathTo(rule, "cost")];
    const inCost = (field: string): FunctionUse["path"] => [...at, pathTo(cost, field)];
    return [
      // Without `settle`, the cost may be a text, which has no fields.
      ...nameIn(before).map((name) => ({
        group: "costs" as const,
        name,
        path: settle ? inCost("reserve") : at,
      })),
      ...nameIn(settle).map((name) => ({ group: "settle" as const, name, path: inCost("settle") })),
    ];
  });
}

function responseUses(config: Record<string, unknown>): FunctionUse[] {
  return placedRules(config).flatMap(({ rule, path }) => {
    if (!isRecord(rule) || rule.for === "programs") return [];
    const { response } = rule;
    if (!isRecord(response) || typeof response.custom !== "string") return [];
    return [
      { group: "responses", name: response.custom, path: [...path, pathTo(rule, "response")] },
    ];
  });
}

function nameIn(source: unknown): string[] {
  return isRecord(source) && source.kind === "custom" ? [String(source.name)] : [];
}
