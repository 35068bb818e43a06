import { ConfigError, type ConfigInput, defineConfig, type Fault } from "edge-weir/config";
import { expect, test } from "vitest";

/**
 * Returns a rule with a name, a limit and `fields`. If `fields` has `limits`, the rule has no
 * `limit` and no `window`.
 */
export function rule(fields: object = {}): object {
  const quota = "limits" in fields ? {} : { limit: 5, window: "1m" };
  return { name: "api", ...quota, ...fields };
}

/** Returns a configuration of one rule, which has `fields`. */
export function withRule(fields: object): object {
  return { rules: [rule(fields)] };
}

/** Returns the rule that `defineConfig` makes from a rule with `fields`. */
export function definedRule(fields: object) {
  const [defined] = defineConfig(withRule(fields) as ConfigInput).rules;
  if (!defined) throw new Error("the rule is not there");
  return defined;
}

/**
 * Returns the faults that `defineConfig` throws for `input`; an empty list if it accepts `input`.
 */
export function faultsOf(input: unknown): readonly Fault[] {
  try {
    defineConfig(input as ConfigInput);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

/** A fault's name, a configuration with only this fault, its path, and parts of its message. */
export type Refused = readonly [fault: string, input: unknown, path: string, ...says: string[]];

/**
 * Adds a test for each fault. The test expects that no other fault is reported, and that the fault
 * has this path and these parts of the message.
 */
export function refuses(cases: readonly Refused[]): void {
  test.for(cases)("%s", ([, input, path, ...says]) => {
    const faults = faultsOf(input);
    expect(faults.map((fault) => fault.path)).toEqual([path]);
    for (const words of says) expect(faults[0]?.message).toContain(words);
  });
}
