import type { Conditions } from "../src/config/conditions.ts";
import { printableSecretName } from "../src/config/exempt.ts";
import type { Rule, Tiers } from "../src/config/rule.ts";
import { areTierNamesSecret } from "../src/config/tier-names.ts";
import type { NamedCondition } from "../src/config/value-condition.ts";

// The output of `check` appears in build logs. More people can read these logs than the
// configuration.

/**
 * Returns a rule without the values in `exempt` and in conditions, and without tier names that may
 * be credentials.
 */
export function withoutSecrets({ match, exempt, tiers, ...rule }: Rule): object {
  const { except, ...conditions } = match;
  return {
    ...rule,
    match: { ...withoutValues(conditions), ...(except && { except: withoutValues(except) }) },
    ...(exempt && {
      exempt: {
        ...exempt,
        headers: exempt.headers.map(({ name, value }) => ({
          name,
          value:
            typeof value === "string"
              ? "(not shown)"
              : { secret: printableSecretName(value.secret) },
        })),
      },
    }),
    ...(tiers && { tiers: { ...tiers, windows: printableTiers(tiers) } }),
  };
}

function withoutValues({ headers, query, ...others }: Conditions): object {
  const hide = ({ name, expected }: NamedCondition) => ({
    name,
    expected: typeof expected === "boolean" ? expected : "(not shown)",
  });
  return {
    ...others,
    ...(headers && { headers: headers.map(hide) }),
    ...(query && { query: query.map(hide) }),
  };
}

/**
 * Returns the windows of tiers. If the tiers' names may be credentials, numbers replace the names.
 */
export function printableTiers({ by, windows }: Tiers): Tiers["windows"] {
  if (!areTierNamesSecret(by)) return windows;
  return new Map([...windows.values()].map((each, index) => [`(tier ${index + 1})`, each]));
}
