import { expect, test } from "vitest";
import { ConfigError, type ConfigInput, defineConfig, type Fault } from "weir/config";

/** A rule with nothing in it but what it must have, and `fields`: `limits` stand for its quota. */
export function rule(fields: object = {}): object {
  const quota = "limits" in fields ? {} : { limit: 5, window: "1m" };
  return { name: "api", ...quota, ...fields };
}

/** A configuration of one rule, with `fields` in that rule. */
export function withRule(fields: object): object {
  return { rules: [rule(fields)] };
}

/** What `defineConfig` makes of one rule with `fields`. */
export function definedRule(fields: object) {
  const [defined] = defineConfig(withRule(fields) as ConfigInput).rules;
  if (!defined) throw new Error("the rule is not there");
  return defined;
}

/** The faults for which `defineConfig` refuses `input`; none when it accepts it. */
export function faultsOf(input: unknown): readonly Fault[] {
  try {
    defineConfig(input as ConfigInput);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

/** A name for a fault, a configuration that has no other, its path, and what its message says. */
export type Refused = readonly [fault: string, input: unknown, path: string, ...says: string[]];

/** One test for each fault: there is that one alone, at its path, and it says what is allowed. */
export function refuses(cases: readonly Refused[]): void {
  test.for(cases)("%s", ([, input, path, ...says]) => {
    const faults = faultsOf(input);
    expect(faults.map((fault) => fault.path)).toEqual([path]);
    for (const words of says) expect(faults[0]?.message).toContain(words);
  });
}
