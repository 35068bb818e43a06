import { isAnyMethod } from "../../src/config/explain/match-hint.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { LocalFinding } from "../finding.ts";

/** An import of node:http would also load `fetch`, and double the time in which Node starts. */
const { METHODS } = process.getBuiltinModule("node:http");

/**
 * Warnings about methods that are probably misspelt. HTTP allows a method with any name, so they are
 * no faults. Node's list contains all methods that IANA has registered and that are in use.
 */
export function methodWarnings({ name, match }: Rule, place: string): LocalFinding[] {
  return [
    { methods: match.methods, path: `${place}.match.methods` },
    { methods: match.except?.methods, path: `${place}.match.except.methods` },
  ].flatMap(({ methods = [], path }) =>
    methods
      .filter((method) => !METHODS.includes(method))
      .map((method): LocalFinding => {
        const nearest = nearestName(method, METHODS);
        return {
          code: "unknown-method",
          severity: "warning",
          path,
          message: `In the rule "${name}", ${method} is not a method of HTTP, so probably no request has it`,
          cure: isAnyMethod(method)
            ? "Leave methods out to match every method"
            : nearest
              ? `Write "${nearest}"`
              : 'Write a method such as "POST"',
        };
      }),
  );
}
