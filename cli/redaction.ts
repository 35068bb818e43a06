import { printableSecretName } from "../src/config/exempt.ts";
import type { Rule, Tiers } from "../src/config/rule.ts";
import { areTierNamesSecret } from "../src/config/tier-names.ts";

// The output of `check` appears in build logs. More people can read these logs than the
// configuration.

/**
 * Returns a rule without the values in `exempt`, and without tier names that may be credentials.
 */
export function withoutSecrets({ exempt, tiers, ...rule }: Rule): object {
  return {
    ...rule,
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

/**
 * Returns the windows of tiers. If the tiers' names may be credentials, numbers replace the names.
 */
export function printableTiers({ by, windows }: Tiers): Tiers["windows"] {
  if (!areTierNamesSecret(by)) return windows;
  return new Map([...windows.values()].map((each, index) => [`(tier ${index + 1})`, each]));
}
