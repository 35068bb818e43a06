import type { Conditions } from "../../src/config/conditions.ts";
import type { Match } from "../../src/config/match.ts";
import type { NetworkSet } from "../../src/config/network-set.ts";

/**
 * Returns the conditions of `except`, but without each list that contains all elements of the same
 * list in `match`. Every request that meets `match` also meets such a condition of `except`.
 */
export function narrowedExcept({ except = {}, ...match }: Match): Conditions {
  const { ips, countries, asns, ...others } = except;
  return {
    ...others,
    ...(ips && !(match.ips && containsNetworks(ips, match.ips)) && { ips }),
    ...(countries && !containsAll(countries, match.countries) && { countries }),
    ...(asns && !containsAll(asns, match.asns) && { asns }),
  };
}

function containsAll<Item>(wide: readonly Item[], narrow: readonly Item[] | undefined): boolean {
  const items = new Set(wide);
  return narrow?.every((item) => items.has(item)) === true;
}

/** Whether each narrow network is part of a wide network. */
function containsNetworks(wide: NetworkSet, narrow: NetworkSet): boolean {
  const networks = new Set<string>();
  const lengths = new Set<number>();
  for (const [address, bits] of wide) {
    networks.add(`${address.masked(bits)}/${bits}`);
    lengths.add(bits);
  }
  return [...narrow].every(([address, bits]) =>
    [...lengths].some(
      (length) =>
        length <= Math.min(bits, address.bytes.length * 8) &&
        networks.has(`${address.masked(length)}/${length}`),
    ),
  );
}
