import type { Network } from "../../src/config/network.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";

/** A store in another region needs at least this time for an answer, in milliseconds. */
const SHORT_TIMEOUT_MS = 20;
/** Few clients wait longer than this for a response, in milliseconds. */
const LONG_TIMEOUT_MS = 10_000;

/** Warnings about top-level fields, and about all rules together. */
export function settingWarnings({
  rules,
  timeoutMs,
  store,
  nativeLimiter,
}: Config): LocalFinding[] {
  const isRemote = store !== "memory";
  const findings: (LocalFinding | false)[] = [
    isRemote &&
      timeoutMs < SHORT_TIMEOUT_MS && {
        code: "short-timeout",
        severity: "warning",
        path: "timeoutMs",
        message: `With timeoutMs: ${timeoutMs}, most decisions end before the store can answer, and onError applies`,
        cure: "Write at least 100; the default is 1000",
      },
    isRemote &&
      timeoutMs >= LONG_TIMEOUT_MS && {
        code: "long-timeout",
        severity: "warning",
        path: "timeoutMs",
        message: `While the store does not answer, each request waits ${timeoutMs / 1000} s before onError applies`,
        cure: "Write a lower number; the default is 1000",
      },
    nativeLimiter !== undefined &&
      rules.every(({ onError }) => onError !== "local") && {
        code: "native-limiter-unused",
        severity: "warning",
        path: "nativeLimiter",
        message: 'Weir never calls the rate limiter, because no rule has onError: "local"',
        cure: 'Set onError: "local" in a rule, or remove nativeLimiter',
      },
    rules.every(({ mode }) => mode !== "enforce") && nothingEnforced(rules),
  ];
  return findings.filter((finding) => finding !== false);
}

function nothingEnforced(rules: readonly Rule[]): LocalFinding {
  const modes = ["shadow", "mark"].filter((mode) => rules.some((rule) => rule.mode === mode));
  const remove = 'When the counts are as expected, remove mode: "shadow" from the rules';
  return {
    code: "nothing-enforced",
    severity: "warning",
    path: "rules",
    message: `Every rule has mode: ${modes.map((mode) => `"${mode}"`).join(" or ")}, so no request is denied`,
    cure: modes.includes("shadow")
      ? remove
      : "If your origin does not limit the requests itself, add a rule that is enforced",
  };
}

/** Findings about networks in `exempt.ips`, `match.ips` and `match.except.ips`. */
export function networkFindings({ name, exempt, match }: Rule, place: string): LocalFinding[] {
  const { ips, except } = match;
  return [
    ...wideNetworks(name, `${place}.exempt.ips`, exempt?.networks),
    ...wideNetworks(name, `${place}.match.except.ips`, except?.ips),
    ...hostBits(name, `${place}.exempt.ips`, exempt?.networks),
    ...hostBits(name, `${place}.match.ips`, ips),
    ...hostBits(name, `${place}.match.except.ips`, except?.ips),
  ];
}

/** Warns of a network such as `198.51.100.7/24`, which may stand for one address or for 256. */
function hostBits(name: string, path: string, networks: Iterable<Network> = []): LocalFinding[] {
  const [first] = [...networks].filter(([address, bits]) => {
    return address.masked(bits).toString() !== address.toString();
  });
  if (!first) return [];
  const [address, bits] = first;
  const network = `${address.masked(bits)}/${bits}`;
  return [
    {
      code: "address-in-network",
      severity: "warning",
      path,
      message: `In the rule "${name}", ${address}/${bits} is the network ${network}, not one address`,
      cure: `Write ${address} for the address, or ${network} for the network`,
    },
  ];
}

/** Findings about networks that contain most clients of a rule. */
function wideNetworks(
  name: string,
  path: string,
  networks: Iterable<Network> = [],
): LocalFinding[] {
  return [...networks].flatMap(([address, bits]): LocalFinding[] => {
    if (bits >= MIN_EXEMPT_BITS) return [];
    const network = `${address}/${bits}`;
    const cure = "Write only the networks of your own systems, or remove the entry";
    return [
      bits === 0
        ? {
            code: "exempts-everybody",
            severity: "fault",
            path,
            message: `${network} is every ${address.kind() === "ipv4" ? "IPv4" : "IPv6"} address, so the rule "${name}" does not count these clients`,
            cure,
          }
        : {
            code: "exempts-many",
            severity: "warning",
            path,
            message: `${network} is a large part of all addresses, so the rule "${name}" misses many clients`,
            cure,
          },
    ];
  });
}

/**
 * If the prefix of an exempt network has fewer bits than this, the network contains a large part of
 * all addresses.
 */
export const MIN_EXEMPT_BITS = 8;

/** Warns that one client can have several counters, if a prefix of IPv6 is longer than a network. */
export function ipv6Warning(bits: number): LocalFinding {
  const networks = bits - 64 < 32 ? 2 ** (bits - 64) : `2^${bits - 64}`;
  return {
    code: "ipv6-prefix",
    severity: "warning",
    path: "ipv6Prefix",
    message: `A client with one /64, such as a home, counts as ${networks} clients`,
    cure: "Set ipv6Prefix to 64 or less",
  };
}
