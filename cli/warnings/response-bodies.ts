import type { Rule } from "../../src/config/rule.ts";
import type { LocalFinding } from "../finding.ts";

/** Warns of `response: { body: "custom:page" }`: clients get this text, and no function is called. */
export function responseBodyWarnings({ name, response }: Rule, place: string): LocalFinding[] {
  const body = response && "body" in response ? response.body : undefined;
  const [, custom] = /^\s*custom:\s*(\w+)\s*$/.exec(typeof body === "string" ? body : "") ?? [];
  if (custom === undefined) return [];
  return [
    {
      code: "body-names-function",
      severity: "warning",
      path: `${place}.response.body`,
      message: `Clients that the rule "${name}" denies get the text custom:${custom}, because body is no notation for a function`,
      cure: `Write response: "custom:${custom}", and return the status and the body from custom.responses.${custom}`,
    },
  ];
}
