import type { Conditions } from "../../src/config/conditions.ts";
import type { Match } from "../../src/config/match.ts";
import type { NetworkSet } from "../../src/config/network-set.ts";
import type { NamedCondition, ValuePattern } from "../../src/config/value-condition.ts";

/**
 * Returns the conditions of `except`, but without each list that contains all elements of the same
 * list in `match`. Every request that meets `match` also meets such a condition of `except`.
 */
export function narrowedExcept({ except = {}, ...match }: Match): Conditions {
  const { headers, query, ips, countries, asns, ...others } = except;
  return {
    ...others,
    ...(headers && !containsValues(headers, match.headers) && { headers }),
    ...(query && !containsValues(query, match.query) && { query }),
    ...(ips && !(match.ips && containsNetworks(ips, match.ips)) && { ips }),
    ...(countries && !containsAll(countries, match.countries) && { countries }),
    ...(asns && !containsAll(asns, match.asns) && { asns }),
  };
}

function containsAll<Item>(wide: readonly Item[], narrow: readonly Item[] | undefined): boolean {
  const items = new Set(wide);
  return narrow?.every((item) => items.has(item)) === true;
}

/** Whether every request that meets the narrow conditions also meets each of the wide ones. */
function containsValues(
  wide: readonly NamedCondition[],
  narrow: readonly NamedCondition[] = [],
): boolean {
  return wide.every(({ name, expected }) =>
    narrow.some((each) => each.name === name && containsExpected(expected, each.expected)),
  );
}

function containsExpected(
  wide: NamedCondition["expected"],
  narrow: NamedCondition["expected"],
): boolean {
  if (typeof wide === "boolean" || typeof narrow === "boolean") {
    return wide === narrow || (wide === true && narrow !== false);
  }
  return narrow.every((pattern) => wide.some((each) => containsPattern(each, pattern)));
}

/** A prefix contains each text, and each longer prefix, that begins with it. */
function containsPattern(wide: ValuePattern, narrow: ValuePattern): boolean {
  if (typeof wide === "string") return wide === narrow;
  return (typeof narrow === "string" ? narrow : narrow.prefix).startsWith(wide.prefix);
}

/** Whether each narrow network is part of a wide network. */
export function containsNetworks(wide: NetworkSet, narrow: NetworkSet): boolean {
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
