import { shownSecretName } from "../src/config/exempt.ts";
import type { Rule } from "../src/config/rule.ts";
import { areTierNamesSecret } from "../src/config/tier-names.ts";

type Tiers = NonNullable<Rule["tiers"]>;

// What `check` prints goes into the logs of builds, which more people read than the configuration.

/** A rule as it is printed: without the values that exempt from it, and without credentials as tiers. */
export function withoutSecrets({ exempt, tiers, ...rule }: Rule): object {
  return {
    ...rule,
    ...(exempt && {
      exempt: {
        ...exempt,
        headers: exempt.headers.map(({ name, value }) => ({
          name,
          value:
            typeof value === "string" ? "(not shown)" : { secret: shownSecretName(value.secret) },
        })),
      },
    }),
    ...(tiers && { tiers: { ...tiers, windows: shownTiers(tiers) } }),
  };
}

/** The windows of tiers by the names to print: what a credential must hold is not one of them. */
export function shownTiers({ by, windows }: Tiers): Tiers["windows"] {
  if (!areTierNamesSecret(by)) return windows;
  return new Map([...windows.values()].map((each, index) => [`(tier ${index + 1})`, each]));
}
