import { inputOf } from "../../src/config/define.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import { conditionWarnings } from "./conditions.ts";
import { costFindings } from "./costs.ts";
import { duplicateWarnings } from "./duplicates.ts";
import { limitFindings } from "./limits.ts";
import { llmFunctionFindings } from "./llm-functions.ts";
import { methodWarnings } from "./methods.ts";
import { millisecondWarnings } from "./milliseconds.ts";
import { notationWarnings } from "./notation.ts";
import { responseBodyWarnings } from "./response-bodies.ts";
import { rulePath, rulePlaces } from "./rule-places.ts";
import { ruleWarnings } from "./rules.ts";
import { networkFindings, settingWarnings } from "./settings.ts";
import { tierHostWarnings } from "./tier-hosts.ts";
import { timeZoneWarnings } from "./time-zones.ts";
import { zeroLimitWarnings } from "./zero-limits.ts";

/**
 * Returns all findings about a valid configuration, without wrangler's configuration.
 *
 * @param routed whether a Hono app may apply each rule to some of its routes only
 */
export function configFindings(config: Config, routed = false): LocalFinding[] {
  const places = rulePlaces(config);
  const ofEachRule = config.rules.flatMap((rule, index) => {
    const place = rulePath(places, index);
    return [
      ...limitFindings(rule, place),
      ...costFindings(rule, place),
      ...zeroLimitWarnings(rule, place),
      ...tierHostWarnings(rule, place),
      ...methodWarnings(rule, place),
      ...notationWarnings(rule, place),
      ...networkFindings(rule, place),
      ...responseBodyWarnings(rule, place),
      ...timeZoneWarnings(rule, place),
    ];
  });
  return [
    ...settingWarnings(config),
    ...millisecondWarnings(inputOf(config)),
    ...ofEachRule,
    ...llmFunctionFindings(config),
    ...duplicateWarnings(config, routed),
    ...ruleWarnings(config),
    ...conditionWarnings(config),
  ];
}
