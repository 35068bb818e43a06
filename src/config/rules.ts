import * as v from "valibot";
import { faultText, listOfNames, pathOf, shortened } from "./faults.ts";
import {
  anyMapOf,
  checkOf,
  type Fields,
  isMap,
  isRecord,
  listUpTo,
  type Refuse,
  textMatching,
} from "./fields.ts";
import { partsOf } from "./key.ts";
import type { LimitSource } from "./limit-source.ts";
import type { RuleInput } from "./rule.ts";
import { type Rule, RuleSchema, type Window } from "./rule.ts";

const MAX_RULES = 10_000;

const RULES = faultText(
  () =>
    `a list of rules, or an object with a list of rules for each file, at most ${MAX_RULES} rules`,
);
const LIST = faultText("a list of rules");
const TOO_MANY = faultText(() => `there can be at most ${MAX_RULES} rules`);
const FILE = faultText(
  'the name of a file, such as "rules/login.ts": 1 to 200 characters, and not a whole number, because objects list such names first',
);

/**
 * Matches the name of a file. Control characters would break the lines of messages. JavaScript would move a name that
 * is a number to the front of an object.
 */
const FILE_NAME = /^(?!(0|[1-9]\d*)$)[^\p{Cc}]{1,200}$/u;

/**
 * The rules of a configuration: a list, or an object with a list for each file. The paths of faults contain the names
 * of the files.
 *
 * @typeParam RuleName the names of the rules, as literal types
 */
export type RulesInput<RuleName extends string = string> =
  | readonly RuleInput<RuleName>[]
  | RuleFilesInput<RuleName>;

/**
 * The rules of several files. The field `length` excludes lists: otherwise the compiler would compare a list of rules
 * with this type too, and report a mistake in one rule at the name of every rule.
 *
 * @typeParam RuleName the names of the rules, as literal types
 */
export type RuleFilesInput<RuleName extends string = string> = Readonly<
  Record<string, readonly RuleInput<RuleName>[]>
> & { readonly length?: never };

/**
 * Returns the given rules unchanged. Call this function in a file that exports rules, so that the compiler checks the
 * rules there and keeps their names as types. `defineConfig` checks the values.
 *
 * @example
 * // rules/login.ts
 * export const loginRules = defineRules([
 *   { name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m" },
 * ]);
 *
 * // weir.config.ts
 * export default defineConfig({ rules: { "rules/login.ts": loginRules } });
 *
 * @typeParam RuleName the names of the rules. The compiler derives them from `rules`.
 */
export function defineRules<const RuleName extends string = never>(
  rules: readonly RuleInput<RuleName>[],
): readonly RuleInput<RuleName>[] {
  return rules;
}

/** A rule that may have faults, and its path in the configuration. */
interface PlacedRule {
  readonly rule: unknown;
  readonly path: readonly (string | number)[];
}

/** Returns the rules of a configuration in their order, with and without faults. */
export function placedRules({ rules }: Fields): PlacedRule[] {
  const files: [string, unknown][] = isMap(rules)
    ? [...rules]
    : isRecord(rules)
      ? Object.entries(rules)
      : [];
  return [
    ...rulesIn(rules, "rules"),
    ...files.flatMap(([file, list]) => rulesIn(list, "rules", file)),
  ];
}

function rulesIn(list: unknown, ...path: string[]): PlacedRule[] {
  return Array.isArray(list) ? list.map((rule, index) => ({ rule, path: [...path, index] })) : [];
}

/**
 * Whether a value is probably an object of lists, instead of a single rule or an object of rules. A rule may have
 * lists too, but also has a text as its name.
 */
function isByFile(value: unknown): boolean {
  if (!isRecord(value) || typeof value.name === "string") return false;
  return Object.values(value).some(Array.isArray);
}

const RuleList = listUpTo(MAX_RULES, RuleSchema, RULES, TOO_MANY);

const RuleFiles = v.pipe(
  v.custom<Readonly<Record<string, readonly RuleInput[]>>>(isRecord, RULES),
  // If there are too many rules in total, the single rules are not checked.
  checkOf((files, refuse) => {
    if (Object.values(files).flat().length > MAX_RULES) refuse("too-many", TOO_MANY);
  }),
  anyMapOf(textMatching(FILE_NAME, FILE), v.array(RuleSchema, LIST), RULES),
);

/** The output is a list, or a Map with the list of each file, for {@link flatRules}. */
export const RulesSchema = v.pipe(
  v.custom<RulesInput>((value) => Array.isArray(value) || isByFile(value), RULES),
  v.lazy<v.GenericSchema<RulesInput, CheckedRules>>((value) =>
    Array.isArray(value) ? RuleList : RuleFiles,
  ),
);

type CheckedRules = readonly Rule[] | ReadonlyMap<string, readonly Rule[]>;

/** Returns the rules of all files in one list. */
export function flatRules(rules: CheckedRules): readonly Rule[] {
  return rules instanceof Map ? [...rules.values()].flat() : (rules as readonly Rule[]);
}

/** The groups of functions in `custom`, each with the argument of its functions. */
const GROUPS = {
  keys: "request",
  costs: "request",
  limits: "client",
  settle: "response",
  responses: "denial",
};
type Group = keyof typeof GROUPS;

/** A name in a rule that refers to the top level: to a function, or to a claim of a token. */
interface Use {
  readonly group: Group | "jwt";
  readonly name: string;
  readonly path: PlacedRule["path"];
}

/**
 * Compares the rules with each other and with the top level. Each rule needs a unique name. Each claim needs `jwt`,
 * because Weir uses only claims of verified tokens. Each `custom:NAME` needs a function.
 */
export function checkRules<Output>() {
  return checkOf<Output>((config, refuse) => {
    const rules = placedRules(config);
    if (rules.length > MAX_RULES) return;
    checkNames(rules, refuse);
    for (const placed of rules) {
      const isForPrograms = isRecord(placed.rule) && placed.rule.for === "programs";
      for (const use of usesIn(placed)) {
        if (use.group !== "jwt") checkFunction(use.group, use, config.custom, refuse);
        else if (isForPrograms) refuse("conflict", HAS_NO_TOKEN, ...use.path);
        else if (config.jwt === undefined) refuse("needs", NEEDS_JWT, ...use.path);
      }
    }
  });
}

const HAS_NO_TOKEN = faultText("write custom:NAME: a call of a program has no token");
const NEEDS_JWT = faultText(
  'a key or limit that reads a claim needs the top-level field jwt, such as jwt: { jwks: "https://…" }',
);

function checkNames(rules: readonly PlacedRule[], refuse: Refuse): void {
  const seen = new Map<string, PlacedRule["path"]>();
  for (const { rule, path } of rules) {
    const name = isRecord(rule) ? rule.name : undefined;
    if (typeof name !== "string") continue;
    const first = seen.get(name);
    if (first) {
      refuse(
        "duplicate",
        faultText(() => `${pathOf(first)} has the same name, and each rule needs a different one`),
        ...path,
        "name",
      );
    } else seen.set(name, path);
  }
}

/**
 * Returns the names in a rule. In a rule for programs, only its limits need them, because programs pass its keys and
 * costs.
 */
function usesIn({ rule, path }: PlacedRule): Use[] {
  if (!isRecord(rule)) return [];
  const ofLimits = limitUsesIn(rule, path);
  if (rule.for === "programs") return ofLimits;
  const { key, tiers = {}, cost = {}, response = {} } = rule;
  const uses = (group: Use["group"], kind: string, source: unknown, ...keys: string[]): Use[] =>
    partsOf(source).flatMap((part) =>
      part.kind === kind && "name" in part
        ? { group, name: part.name, path: [...path, ...keys] }
        : [],
    );
  const inKey = (source: unknown, ...keys: string[]) => [
    ...uses("jwt", "jwt", source, ...keys),
    ...uses("keys", "custom", source, ...keys),
  ];
  const inResponse = isRecord(response) && response.custom;
  return [
    ...ofLimits,
    ...inKey(key, "key"),
    ...(isRecord(tiers) ? inKey(tiers.by, "tiers", "by") : []),
    ...(isRecord(cost)
      ? [
          // Without `settle`, the cost may be a text without fields.
          ...uses("costs", "custom", cost.before, "cost", ...(cost.settle ? ["reserve"] : [])),
          ...uses("settle", "custom", cost.settle, "cost", "settle"),
        ]
      : []),
    ...(typeof inResponse === "string"
      ? [{ group: "responses" as const, name: inResponse, path: [...path, "response"] }]
      : []),
  ];
}

/** Returns the names in the limits of a rule without faults. A tier may have inherited the limit `concurrent`. */
function limitUsesIn({ windows, tiers }: Fields, path: PlacedRule["path"]): Use[] {
  const seen = new Set<LimitSource>();
  const uses = (all: unknown, ...keys: string[]): Use[] => {
    const each = Array.isArray(all) ? (all as readonly Window[]) : [];
    const isList = each.filter(({ concurrent }) => !concurrent).length > 1;
    return each.flatMap(({ from = {}, concurrent }) =>
      Object.entries(from).flatMap(([field, source]: [string, LimitSource]): Use | [] => {
        if (seen.has(source)) return [];
        seen.add(source);
        const place = concurrent ? "concurrent" : isList ? "limits" : field;
        const { kind, name } = source.from;
        return { group: kind === "jwt" ? kind : "limits", name, path: [...path, ...keys, place] };
      }),
    );
  };
  const ofTiers = isRecord(tiers) && isMap(tiers.windows) ? [...tiers.windows] : [];
  return [
    ...uses(windows),
    ...ofTiers.flatMap(([tier, each]) => uses(each, "tiers", "limits", tier)),
  ];
}

function checkFunction(group: Group, { name, path }: Use, custom: unknown, refuse: Refuse): void {
  const names = functionNames(custom, group);
  // If `custom` or the group is not an object, the schema has reported this.
  if (!names || names.includes(name)) return;
  const message = faultText(() => {
    const shown = shortened(name);
    const other = Object.keys(GROUPS).find((each) => functionNames(custom, each)?.includes(name));
    const present = names.length > 0 ? `which has only ${listOfNames(names)}` : "which has none";
    const cure = `Add custom: { ${group}: { ${shown}: (${GROUPS[group]}) => … } } beside rules`;
    const ofPrograms =
      group === "keys" ? ', or, if only programs use the rule, for: "programs"' : "";
    return `custom:${shown} needs a function in custom.${group}, ${other ? `but ${shown} is in custom.${other}` : present}. ${cure}${ofPrograms}`;
  });
  refuse("needs", message, ...path);
}

/** Returns the names of the functions in a group; undefined if the group is not an object. */
function functionNames(custom: unknown, group: string): string[] | undefined {
  if (custom === undefined) return [];
  const functions = isRecord(custom) ? (custom[group] ?? {}) : undefined;
  if (isMap(functions)) return [...functions.keys()];
  return isRecord(functions) ? Object.keys(functions) : undefined;
}
