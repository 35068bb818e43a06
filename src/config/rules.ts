import * as v from "valibot";
import { faultText, pathOf } from "./faults.ts";
import { anyMapOf, isRecord, listUpTo, pathTo, pathToItem, textMatching } from "./fields.ts";
import { partsOf } from "./key.ts";
import type { RuleInput } from "./rule.ts";
import { type Rule, RuleSchema } from "./rule.ts";

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
 * Matches the name of a file. Control characters would break the lines of messages, and JavaScript
 * moves names that are numbers to the front of an object.
 */
const FILE_NAME = /^(?!(0|[1-9]\d*)$)[^\p{Cc}]{1,200}$/u;

/**
 * The rules of a configuration: a list, or an object with a list for each file. The paths of faults
 * contain these names.
 *
 * @typeParam RuleName the names of the rules, as literal types
 */
export type RulesInput<RuleName extends string = string> =
  | readonly RuleInput<RuleName>[]
  | RuleFilesInput<RuleName>;

/**
 * The rules of several files. An array is never such an object, because it has a length. Without the
 * field `length`, the compiler would compare a list of rules with this type too. A mistake in one rule would
 * then be an error at the name of every rule.
 *
 * @typeParam RuleName the names of the rules, as literal types
 */
export type RuleFilesInput<RuleName extends string = string> = Readonly<
  Record<string, readonly RuleInput<RuleName>[]>
> & { readonly length?: never };

/**
 * Returns the given rules. A file that exports rules calls this function, so that the compiler checks
 * the rules in that file and keeps their names as types. `defineConfig` checks the values.
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

/** A rule that may have faults, and the path to it. */
export interface PlacedRule {
  readonly rule: unknown;
  readonly path: [v.ObjectPathItem, ...v.IssuePathItem[]];
}

/** Returns the rules of a configuration in their order, whether or not the rules have faults. */
export function placedRules(config: Readonly<Record<string, unknown>>): PlacedRule[] {
  const { rules } = config;
  const start = pathTo(config, "rules");
  const files = rules instanceof Map ? Object.fromEntries(rules) : rules;
  if (!isRecord(files)) return rulesIn(rules, [start]);
  return Object.entries(files).flatMap(([file, list]) =>
    rulesIn(list, [start, pathTo(files, file)]),
  );
}

function rulesIn(list: unknown, path: PlacedRule["path"]): PlacedRule[] {
  if (!Array.isArray(list)) return [];
  return list.map((rule, index) => ({ rule, path: [...path, pathToItem(list, index)] }));
}

/**
 * Whether a value is probably an object of lists, and not one rule or an object of rules. A rule may
 * have lists too, but it has a name, which is a text.
 */
function isByFile(value: unknown): boolean {
  if (!isRecord(value) || typeof value.name === "string") return false;
  return Object.values(value).some(Array.isArray);
}

const RuleList = listUpTo(MAX_RULES, RuleSchema, RULES, TOO_MANY);

const RuleFiles = v.pipe(
  v.custom<Readonly<Record<string, readonly RuleInput[]>>>(isRecord, RULES),
  // If there are too many rules in total, the rules themselves are not checked.
  v.rawCheck(({ dataset, addIssue }) => {
    if (Object.values(dataset.value as object).flat().length > MAX_RULES) {
      addIssue({ message: TOO_MANY });
    }
  }),
  anyMapOf(textMatching(FILE_NAME, FILE), v.array(RuleSchema, LIST), RULES),
);

/** The output is a list, or a Map with the list of each file. {@link flatRules} joins these lists. */
export const RulesSchema = v.pipe(
  v.custom<RulesInput>((value) => Array.isArray(value) || isByFile(value), RULES),
  v.lazy<v.GenericSchema<RulesInput, CheckedRules>>((value) =>
    Array.isArray(value) ? RuleList : RuleFiles,
  ),
  checkNames(),
);

type CheckedRules = readonly Rule[] | ReadonlyMap<string, readonly Rule[]>;

/** Returns the rules of all files in one list. */
export function flatRules(rules: CheckedRules): readonly Rule[] {
  return rules instanceof Map ? [...rules.values()].flat() : (rules as readonly Rule[]);
}

/** Checks that each rule has a different name. */
function checkNames() {
  return v.rawCheck<CheckedRules>(({ dataset, addIssue }) => {
    const placed = placedRules({ rules: dataset.value });
    if (placed.length > MAX_RULES) return;
    const seen = new Map<string, string>();
    for (const { rule, path } of placed) {
      const name = isRecord(rule) ? rule.name : undefined;
      if (typeof name !== "string") continue;
      const first = seen.get(name);
      if (first === undefined) {
        seen.set(name, pathOf(path.map(({ key }) => key)));
        continue;
      }
      // In this schema, the path of an issue does not contain `rules`, so the first item is
      // removed.
      const [, item, ...items] = path as [unknown, v.IssuePathItem, ...v.IssuePathItem[]];
      addIssue({
        path: [item, ...items, pathTo({ name }, "name")],
        input: name,
        message: faultText(() => `${first} has the same name, and each rule needs a different one`),
      });
    }
  });
}

// Each of these checks compares a rule with a top-level field. The checks also run if the configuration
// has other faults, so that Weir reports all faults at once.

/** A value of a key in a rule, in the notation of the configuration, such as `jwt:sub`. */
interface KeyUse {
  readonly kind: string;
  readonly name: string;
  readonly path: PlacedRule["path"];
}

/**
 * Checks that `jwt` is set if a key reads a claim, because Weir uses a claim only after it has
 * verified the token.
 */
export function checkClaims<Fields>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    const config: unknown = dataset.value;
    if (!isRecord(config) || config.jwt !== undefined) return;
    const message = faultText(
      'a key that reads a claim needs the top-level field jwt, such as jwt: { jwks: "https://…" }',
    );
    for (const { kind, name, path } of namedParts(config)) {
      if (kind === "jwt") addIssue({ path, input: name, message });
    }
  });
}

/**
 * Returns the named values in the keys and tiers of all rules that count HTTP requests. For other
 * rules, programs pass the keys.
 */
export function namedParts(config: Record<string, unknown>): KeyUse[] {
  return placedRules(config).flatMap(({ rule, path }) => {
    if (!isRecord(rule) || rule.for === "programs") return [];
    const { tiers } = rule;
    return [
      ...namesIn(rule.key, [...path, pathTo(rule, "key")]),
      ...(isRecord(tiers)
        ? namesIn(tiers.by, [...path, pathTo(rule, "tiers"), pathTo(tiers, "by")])
        : []),
    ];
  });
}

function namesIn(key: unknown, path: KeyUse["path"]): KeyUse[] {
  return partsOf(key).flatMap((part) =>
    "name" in part ? { kind: part.kind, name: part.name, path } : [],
  );
}
