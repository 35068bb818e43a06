import { inputOf } from "../../src/config/define.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import { duplicateWarnings } from "./duplicates.ts";
import { limitFindings } from "./limits.ts";
import { methodWarnings } from "./methods.ts";
import { millisecondWarnings } from "./milliseconds.ts";
import { notationWarnings } from "./notation.ts";
import { ruleWarnings } from "./rules.ts";
import { networkFindings, settingWarnings } from "./settings.ts";

/**
 * Returns all findings about a valid configuration, without wrangler's configuration.
 *
 * @param routed whether a Hono app may apply each rule to some of its routes only
 */
export function configFindings(config: Config, routed = false): LocalFinding[] {
  const ofEachRule = config.rules.flatMap((rule, index) => {
    const place = `rules[${index}]`;
    return [
      ...limitFindings(rule, place),
      ...methodWarnings(rule, place),
      ...notationWarnings(rule, place),
      ...networkFindings(rule, place),
    ];
  });
  return [
    ...settingWarnings(config),
    ...millisecondWarnings(inputOf(config)),
    ...ofEachRule,
    ...duplicateWarnings(config, routed),
    ...ruleWarnings(config),
  ];
}
