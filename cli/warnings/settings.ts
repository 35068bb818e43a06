import type { Network } from "../../src/config/address.ts";
import type { ClaimPart, KeyExpression } from "../../src/config/key.ts";
import { splitRoute } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { allWindowsOf, isChargedByResponse } from "../../src/limiter/counters.ts";
import { sourcesIn } from "../../src/request/client-limits.ts";
import { found, type LocalFinding } from "../finding.ts";
import { isCovered } from "./conditions.ts";

/** Warns of claims whose names contain dots, because other programs write nested claims like that. */
export function claimWarnings(rule: Rule, place: string): LocalFinding[] {
  const { name, key, tiers } = rule;
  const sources = new Map(sourcesIn(allWindowsOf(rule)).map(({ from }) => [from.name, from]));
  return [
    ...dottedClaims(key).map((claim) => dottedClaim(claim, name, `${place}.key`)),
    ...dottedClaims(tiers?.by ?? []).map((claim) => dottedClaim(claim, name, `${place}.tiers.by`)),
    ...dottedClaims([[...sources.values()]]).map((claim) =>
      dottedClaim(claim, name, place, "limit's source"),
    ),
  ];
}

function dottedClaims(key: KeyExpression): ClaimPart[] {
  return key
    .flat()
    .filter((part) => part.kind === "jwt")
    .filter(({ name, pointer }) => !pointer && /[^.]\.[^.]/.test(name));
}

function dottedClaim(
  claim: ClaimPart,
  rule: string,
  path: string,
  reader: "key" | "limit's source" = "key",
): LocalFinding {
  const nested = claim.name.split(".").filter(Boolean).join("/");
  return found(
    "dotted-claim",
    path,
    `The ${reader} "jwt:${claim.name}" of the rule "${rule}" reads one claim whose name contains a dot, and no nested claim`,
    `Write "jwt:/${nested}" for a nested claim, or "jwt:/${claim.name}" if the name contains the dot`,
  );
}

/** Words of paths to which clients send credentials. */
const CREDENTIAL_WORDS = new Set(
  "login logon signin auth authenticate authentication oauth token session password passwd passcode otp totp 2fa mfa passkey webauthn magiclink reset forgot xmlrpc".split(
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

/** The words of a literal segment, or of a parameter's pattern. The parameter's name is no part of a path. */
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

/** A segment that is a parameter in another framework: `[id]`, `[...slug]`, `<int:id>` or `$id`. */
const PARAMETER_OF_OTHERS =
  /^(?:\[{1,2}(?:\.{3})?\w+(?:=\w+)?\]{1,2}|<(?:\w+:)?\w+>|\$(?:\w*id|slug|name|key|user|username))$/i;

/**
 * Warnings about paths in the notation of another framework, such as `/users/[id]`. Such a path is
 * valid, but it matches only the text as it is written.
 */
export function notationWarnings({ name, match }: Rule, place: string): LocalFinding[] {
  return [
    { paths: match.paths, path: `${place}.match.paths` },
    { paths: match.except?.paths, path: `${place}.match.except.paths` },
  ].flatMap(({ paths = [], path }) =>
    paths
      .filter((route) => route.split("/").some((each) => PARAMETER_OF_OTHERS.test(each)))
      .map((route) =>
        found(
          "path-notation",
          path,
          `In the rule "${name}", ${route} matches only this text, because it has no parameter in Hono's notation`,
          "Write a parameter as :id, a number as :id{[0-9]+}, and the rest of a path as *",
        ),
      ),
  );
}

/** Last segments of paths that are usually the start of other paths, such as a version of an API. */
const PREFIX_SEGMENT =
  /^(?:|apis?|rest|v\d+(?:\.\d+)*|auth|admin|internal|private|public|static|assets|wp-admin|wp-json)$/i;

/**
 * Warns of exact paths that were probably meant as the start of paths, because other programs read them so: a mount of
 * Express, a path of Kong, a location of nginx. A path looks so by its last segment, or if an exception is below it.
 */
export function exactPathWarnings(
  rule: Rule,
  place: string,
  { enforced, caseSensitive }: { enforced: readonly Rule[]; caseSensitive: boolean },
): LocalFinding[] {
  const { name, match } = rule;
  const exact = (match.paths ?? []).filter((path) => !/[:*]/.test(path.replace(/^.*\//, "")));
  return exact.flatMap((path) => {
    const start = path.replace(/\/$/, "");
    const isBelow = (each: string) => each !== path && each.startsWith(`${start}/`);
    const isMeant = match.except?.paths?.includes(`${start}/*`) || match.paths?.some(isBelow);
    const looksLikePrefix =
      match.except?.paths?.some(isBelow) || PREFIX_SEGMENT.test(start.replace(/^.*\//, ""));
    // A log-in is usually a POST to a single path, such as /auth.
    const isLogIn = /\/auth$/i.test(start) && match.methods?.every((method) => method === "POST");
    if (isMeant || isLogIn || !looksLikePrefix) return [];
    const below = { ...rule, match: { ...match, paths: [`${start}/*`] } };
    if (isCovered(below, [...enforced, rule], caseSensitive)) return [];
    return [
      found(
        "exact-path",
        `${place}.match.paths`,
        `The rule "${name}" matches ${path} and no path below it, such as ${start}/users, and no other rule covers these`,
        `Write "${start}/*", which also matches ${start || "/"}`,
      ),
    ];
  });
}

/**
 * Warns if attempts to log in are charged only after their responses, because all attempts before the first response
 * pass. Their number is bounded by a limit of open requests, and by a rule for log-ins that charges at once.
 */
export function lateChargeWarnings(
  rule: Rule,
  place: string,
  { boundingRules, caseSensitive }: { boundingRules: readonly Rule[]; caseSensitive: boolean },
): LocalFinding[] {
  const { name, count, cost } = rule;
  if (!isChargedByResponse(rule) || !isForCredentials(rule)) return [];
  const bounding = [...boundingRules, rule].filter(
    (other) =>
      isForCredentials(other) &&
      (!isChargedByResponse(other) || other.windows.some(({ concurrent }) => concurrent)),
  );
  if (isCovered(rule, bounding, caseSensitive)) return [];
  const cure =
    count && typeof cost === "number"
      ? `Write count: { status: [${count.statuses.join(", ")}], reserve: true }, which charges each request first`
      : 'Add a rule with the same match that charges each request, such as limit: 30, window: "1m"';
  return [
    found(
      "late-charge",
      `${place}.${count ? "count" : "cost"}`,
      `The rule "${name}" charges a request after its response, so any number of guesses at the same time pass`,
      cure,
    ),
  ];
}

/** The prefix length of the network that a regional registry gives at least to an operator. */
const OPERATOR_BITS = 32;

/** Warnings about top-level fields, and about all rules together. */
export function* settingWarnings({ rules, ipv6Prefix }: Config): Iterable<LocalFinding> {
  if (ipv6Prefix > 64) {
    const networks = ipv6Prefix < 96 ? 2 ** (ipv6Prefix - 64) : `2^${ipv6Prefix - 64}`;
    yield found(
      "ipv6-prefix",
      "ipv6Prefix",
      `A client with one /64, such as a home, counts as ${networks} clients`,
      "Set ipv6Prefix to 64 or less",
    );
  }
  if (ipv6Prefix < OPERATOR_BITS) {
    yield found(
      "ipv6-prefix",
      "ipv6Prefix",
      `The customers of up to ${2 ** (OPERATOR_BITS - ipv6Prefix)} operators count as one client, because most operators have one /${OPERATOR_BITS}`,
      "Set ipv6Prefix to 64, or to 56 or 48 for clients with larger networks",
    );
  }
  if (rules.every(({ mode }) => mode !== "enforce")) {
    const modes = ["shadow", "mark"].filter((mode) => rules.some((rule) => rule.mode === mode));
    yield found(
      "nothing-enforced",
      "rules",
      `Every rule has mode: ${modes.map((mode) => `"${mode}"`).join(" or ")}, so no request is denied`,
      modes.includes("shadow")
        ? 'When the counts are as expected, remove mode: "shadow" from the rules'
        : "If your origin does not limit the requests itself, add a rule that is enforced",
    );
  }
}

/** Findings about networks in `exempt.ips` and `match.except.ips`. */
export function networkFindings({ name, exempt, match }: Rule, place: string): LocalFinding[] {
  return [
    ...wideNetworks(name, `${place}.exempt.ips`, exempt?.networks),
    ...wideNetworks(name, `${place}.match.except.ips`, match.except?.ips),
  ];
}

/** Findings about networks that contain many clients. */
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
        ? found(
            "exempts-everybody",
            path,
            `${network} is every ${address.kind() === "ipv4" ? "IPv4" : "IPv6"} address, so the rule "${name}" does not count these clients`,
            cure,
          )
        : found(
            "exempts-many",
            path,
            `${network} is a large part of all addresses, so the rule "${name}" misses many clients`,
            cure,
          ),
    ];
  });
}

/**
 * If the prefix of an exempt network has fewer bits than this, the network contains a large part of
 * all addresses.
 */
export const MIN_EXEMPT_BITS = 8;
