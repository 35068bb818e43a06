import type { Network } from "../../src/config/address.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { ClaimPart, KeyExpression } from "../../src/config/key.ts";
import { parseRoute, splitRoute } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";

/** Warns of claims whose names contain dots, because other programs write nested claims like that. */
export function claimWarnings({ name, key, tiers }: Rule, place: string): LocalFinding[] {
  return [
    ...dottedClaims(key).map((claim) => dottedClaim(claim, name, `${place}.key`)),
    ...dottedClaims(tiers?.by ?? []).map((claim) => dottedClaim(claim, name, `${place}.tiers.by`)),
  ];
}

function dottedClaims(key: KeyExpression): ClaimPart[] {
  return key
    .flat()
    .filter((part) => part.kind === "jwt")
    .filter(({ name, pointer }) => !pointer && /[^.]\.[^.]/.test(name));
}

function dottedClaim(claim: ClaimPart, rule: string, path: string): LocalFinding {
  const nested = claim.name.split(".").filter(Boolean).join("/");
  return {
    code: "dotted-claim",
    severity: "warning",
    path,
    message: `The key "jwt:${claim.name}" of the rule "${rule}" reads one claim whose name contains a dot, and no nested claim`,
    cure: `Write "jwt:/${nested}" for a nested claim, or "jwt:/${claim.name}" if the name contains the dot`,
  };
}

/** Words in a path that show that clients send credentials there. */
const CREDENTIAL_WORDS = new Set(
  "login logon signin auth authenticate oauth token password passwd passcode otp totp 2fa mfa passkey webauthn reset forgot".split(
    " ",
  ),
);

/**
 * Whether clients send credentials to the paths of an enforced rule. Requests that only read send
 * no credentials.
 */
export function isForCredentials({ match, mode }: Rule): boolean {
  const reads = match.methods?.every((method) => /^(GET|HEAD|OPTIONS)$/.test(method));
  if (mode !== "enforce" || reads) return false;
  const segments = (match.paths ?? []).flatMap(splitRoute);
  return segments.some((segment) => {
    const words = wordsOf(segment);
    return words.some((word, index) => {
      // This also finds sign-in and log-in, which are two words.
      return CREDENTIAL_WORDS.has(word) || CREDENTIAL_WORDS.has(`${word}${words[index + 1] ?? ""}`);
    });
  });
}

/** The words of a literal segment or of a parameter's pattern. A parameter's name is not part of any path. */
function wordsOf(segment: string): string[] {
  const text = segment.startsWith(":") ? (/\{(.+)\}/s.exec(segment)?.[1] ?? "") : segment;
  return (
    text
      // `[Ll]ogin` becomes `login`, and `\bauth\b` becomes `auth`.
      .replace(/\[(.)[^\]]*\]/g, "$1")
      .replace(/\\[a-z]/gi, " ")
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter(Boolean)
  );
}

/**
 * Warnings about paths in the notation of another framework, such as `/users/[id]`. Such a path is
 * valid, but it matches only the text as it is written.
 */
export function notationWarnings({ name, match }: Rule, place: string): LocalFinding[] {
  return [
    { paths: match.paths, path: `${place}.match.paths` },
    { paths: match.except?.paths, path: `${place}.match.except.paths` },
  ].flatMap(({ paths = [], path }) =>
    paths.flatMap((route): LocalFinding[] => {
      const meant = routeOfOthers(route);
      if (meant === undefined || !parseRoute(meant)) return [];
      return [
        {
          code: "path-notation",
          severity: "warning",
          path,
          message: `In the rule "${name}", ${route} matches only this text, because it has no parameter in Hono's notation`,
          cure: `Write ${JSON.stringify(meant)}`,
        },
      ];
    }),
  );
}

/**
 * Returns a route in Hono's notation for a path in the notation of another framework; undefined if
 * the path has no such notation. The result may be no valid route.
 *
 * - Next.js, SvelteKit and Astro: `/users/[id]`, `/[...slug]`, `/[[...slug]]`
 * - Flask and Django: `/users/<id>`, `/users/<int:id>`
 * - Remix and TanStack: `/users/$id`
 * - Express 4: `/:id(\\d+)`
 * - nginx and shells: `~ /api`, `*.php`
 * - Rails: `/:id.json`
 */
function routeOfOthers(text: string): string | undefined {
  const [, prefix] = /^[~^]\*?~?\s+\^?(\/[\w/-]*)$/.exec(text) ?? [];
  if (prefix) return prefix.endsWith("/") ? `${prefix}*` : `${prefix}/*`;
  const [, extension] = /^\/?\*\.(\w+)$/.exec(text) ?? [];
  if (extension) return `/:file{.+\\.${extension}}`;
  const segments = text.split("/");
  const mended = segments.map(segmentOfOthers);
  return mended.join() === segments.join() ? undefined : mended.join("/");
}

/** The names of parameters that make a segment such as `$id` different from a literal `$metadata`. */
const DOLLAR = /^\$(\w*id|slug|name|key|user|username)$/i;

function segmentOfOthers(segment: string): string {
  if (/^\[{1,2}\.{3}\w+\]{1,2}$/.test(segment)) return "*";
  const [, bracketed] = /^\[(\w+)(?:=\w+)?\]$/.exec(segment) ?? [];
  if (bracketed) return `:${bracketed}`;
  const [, converter, angled] = /^<(?:(\w+):)?(\w+)>$/.exec(segment) ?? [];
  if (angled) {
    if (converter === "path") return "*";
    return converter === "int" ? `:${angled}{[0-9]+}` : `:${angled}`;
  }
  const [, dollar] = DOLLAR.exec(segment) ?? [];
  if (dollar) return `:${dollar}`;
  const [, name, pattern] = /^:(\w+)\(([^(){}]+)\)$/.exec(segment) ?? [];
  if (name) return pattern === ".*" ? "*" : `:${name}{${pattern}}`;
  const [, file, extension] = /^:(\w+)\.(\w+)$/.exec(segment) ?? [];
  return file ? `:${file}{.+\\.${extension}}` : segment;
}

/** If hosts select the tiers, warns of each tier whose host is not in the rule's `match.hosts`. */
export function tierHostWarnings({ name, match, tiers }: Rule, place: string): LocalFinding[] {
  const { hosts } = match;
  const [[only] = [], ...others] = tiers?.by ?? [];
  if (!tiers || !hosts || only?.kind !== "host" || others.length > 0) return [];
  const unmatched = [...tiers.windows.keys()].filter(
    (tier) => !hosts.some((host) => host === tier || matchesBelow(host, tier)),
  );
  return unmatched.map((tier) => {
    const nearest = nearestName(tier, hosts);
    return {
      code: "tier-never-applies",
      severity: "warning",
      path: `${place}.tiers.limits[${JSON.stringify(tier)}]`,
      message: `No request of the rule "${name}" has this tier, because match.hosts does not contain the host ${tier}`,
      cure: nearest
        ? `Write the tier ${JSON.stringify(nearest)}, or add the host to match.hosts`
        : "Correct the host, add it to match.hosts, or remove the tier",
    };
  });
}

function matchesBelow(host: string, tier: string): boolean {
  return host.startsWith("*.") && tier.endsWith(host.slice(1));
}

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
