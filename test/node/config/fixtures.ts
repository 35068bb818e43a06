import { expect, test } from "vitest";
import { ConfigError, type ConfigInput, defineConfig, type Fault } from "weir/config";

/** A rule with the required fields and `fields`. With `limits` in them, it has no `limit` and `window`. */
export function rule(fields: object = {}): object {
  const quota = "limits" in fields ? {} : { limit: 5, window: "1m" };
  return { name: "api", ...quota, ...fields };
}

/** A configuration of one rule, with `fields` in that rule. */
export function withRule(fields: object): object {
  return { rules: [rule(fields)] };
}

/** The rule that `defineConfig` returns for one rule with `fields`. */
export function definedRule(fields: object) {
  const [defined] = defineConfig(withRule(fields) as ConfigInput).rules;
  if (!defined) throw new Error("the rule is not there");
  return defined;
}

/** The faults that `defineConfig` throws for `input`; none if it accepts the input. */
export function faultsOf(input: unknown): readonly Fault[] {
  try {
    defineConfig(input as ConfigInput);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

/** The name of a fault, a configuration with this fault alone, the path, and parts of the message. */
export type Refused = readonly [fault: string, input: unknown, path: string, ...says: string[]];

/** Adds a test for each fault: it is the only one, it has its path, and its message has the given parts. */
export function refuses(cases: readonly Refused[]): void {
  test.for(cases)("%s", ([, input, path, ...says]) => {
    const faults = faultsOf(input);
    expect(faults.map((fault) => fault.path)).toEqual([path]);
    for (const words of says) expect(faults[0]?.message).toContain(words);
  });
}
