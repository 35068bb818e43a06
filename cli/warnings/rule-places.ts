import { inputOf } from "../../src/config/define.ts";
import { pathOf } from "../../src/config/faults.ts";
import { isRecord } from "../../src/config/fields.ts";
import type { Rule } from "../../src/config/rule.ts";
import { placedRules } from "../../src/config/rules.ts";
import type { Config } from "../../src/config/schema.ts";

/** Where a rule is written. */
export interface RulePlace {
  /** The path of the rule, such as `rules[0]` or `rules["rules/login.ts"][0]`. */
  readonly path: string;
  /** The name of the rule's file in `rules`; undefined if all rules are in one list. */
  readonly file?: string;
}

/** Returns the place of each rule of a valid configuration, in the order of the rules. */
export function rulePlaces(config: Config): readonly RulePlace[] {
  const input = inputOf(config);
  return placedRules(isRecord(input) ? input : {}).map(({ path }): RulePlace => {
    const keys = path.map(({ key }) => key);
    const [, file] = keys;
    return { path: pathOf(keys), ...(typeof file === "string" && { file }) };
  });
}

/** Returns the path of one rule. */
export function rulePath(places: readonly RulePlace[], index: number): string {
  return places[index]?.path ?? `rules[${index}]`;
}

/** A rule, and the name of its file if the rules are in several files. */
export interface FiledRule extends Rule {
  readonly file?: string;
}

/** Returns the rules of a valid configuration, with their files. */
export function filedRules(config: Config): readonly FiledRule[] {
  const places = rulePlaces(config);
  return config.rules.map((rule, index) => {
    const file = places[index]?.file;
    return file === undefined ? rule : { file, ...rule };
  });
}
