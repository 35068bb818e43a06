import type { KeyExpression } from "../../src/config/key-expression.ts";
import { splitRoute } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { type Coverage, createCoverage } from "./coverage.ts";
import type { Warning } from "./warning.ts";

/** Words of a path behind which credentials are tried. */
const CREDENTIALS = new Set(
  "login logon signin auth authenticate oauth token password passwd passcode otp totp 2fa mfa passkey webauthn reset forgot".split(
    " ",
  ),
);

/** What a client puts into a request as it likes, unless somebody checks it. */
const CHOSEN = new Set(["header", "cookie", "query", "param"]);

/** Networks with fewer bits than this hold a large part of all addresses. */
const MIN_EXEMPT_BITS = 8;

/** The other rules, by what they are good for beside the one looked at. */
interface Others {
  readonly coverage: Coverage;
  /** Enforced rules that bound a client where credentials are tried. */
  readonly byAddress: readonly Rule[];
  /** Enforced rules that do not open when the store fails. */
  readonly staysClosed: readonly Rule[];
  /** Enforced rules whose counters a client cannot have many of. */
  readonly bounds: readonly Rule[];
}

/** What in the rules themselves leaves a way around them. */
export function ruleWarnings({ rules, caseSensitivePaths, ipv6Prefix }: Config): Warning[] {
  const enforced = rules.filter(
    (rule) => rule.mode === "enforce" && rule.cost !== 0 && !exemptsMost(rule),
  );
  const others: Others = {
    coverage: createCoverage(caseSensitivePaths),
    byAddress: enforced.filter((rule) => isByAddress(rule) && countsFailures(rule)),
    staysClosed: enforced.filter(({ onError }) => onError !== "open"),
    bounds: enforced.filter(isBound),
  };
  const warnings = rules.flatMap((rule, index) => {
    const place = `rules[${index}]`;
    const inert = exceptWarnings(rule, place, others);
    return [
      ...inert,
      ...(inert.length > 0 ? [] : credentialWarnings(rule, place, others)),
      ...(inert.length > 0 ? [] : madeUpWarnings(rule, place, others)),
      ...exemptWarnings(rule, place),
      ...tierWarnings(rule, place),
    ];
  });
  return ipv6Prefix > 64 ? [...warnings, manyNetworks(ipv6Prefix)] : warnings;
}

function exceptWarnings(rule: Rule, place: string, { coverage }: Others): Warning[] {
  if (!coverage.isExceptedWhole(rule.match)) return [];
  return [
    {
      code: "never-matches",
      where: `${place}.match.except`,
      what: `The rule "${rule.name}" holds for no request: its except takes out all that it is about`,
      advice: "Make except narrower, or remove the rule",
    },
  ];
}

/** Rules that count on trial deny nobody, and one for reading pages tries no password. */
function isForCredentials({ match, mode }: Rule): boolean {
  const reads = match.methods?.every((method) => /^(GET|HEAD|OPTIONS)$/.test(method));
  if (mode === "shadow" || reads) return false;
  const segments = (match.paths ?? []).flatMap(splitRoute);
  return segments.some((segment) => {
    const words = wordsOf(segment);
    return words.some((word, index) => {
      // sign-in is two words to this, and log-in.
      return CREDENTIALS.has(word) || CREDENTIALS.has(`${word}${words[index + 1] ?? ""}`);
    });
  });
}

/** The words of a segment, and of a parameter's pattern; the parameter's name is in no path. */
function wordsOf(segment: string): string[] {
  const text = segment.startsWith(":") ? (/\{(.+)\}/s.exec(segment)?.[1] ?? "") : segment;
  return (
    text
      // `[Ll]ogin` is a way to write `login`, and the `b` of `\bauth\b` is no letter.
      .replace(/\[(.)[^\]]*\]/g, "$1")
      .replace(/\\[a-z]/gi, " ")
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter(Boolean)
  );
}

function credentialWarnings(
  rule: Rule,
  place: string,
  { coverage, byAddress, staysClosed }: Others,
): Warning[] {
  const suspects = hasChosen(rule.key) || rule.onError === "open";
  if (!suspects || !isForCredentials(rule)) return [];
  const warnings: Warning[] = [];
  if (hasChosen(rule.key) && !coverage.isCovered(rule, byAddress)) {
    warnings.push({
      code: "no-address-limit",
      where: `${place}.key`,
      what: `Clients choose what the rule "${rule.name}" counts them by, so each guess can come from a new one`,
      advice: 'Put a rule beside it with the same match and key: "ip"',
    });
  }
  if (!coverage.isCovered(rule, staysClosed)) {
    warnings.push({
      code: "fails-open",
      where: `${place}.onError`,
      what: `Who can slow the store down guesses past the rule "${rule.name}" without a limit`,
      advice: 'Set onError: "closed", or "local"',
    });
  }
  return warnings;
}

/**
 * Of a path parameter there is no warning here: what it names, requests for it share. Where credentials
 * are tried, `no-address-limit` warns of this too.
 */
function madeUpWarnings(rule: Rule, place: string, { coverage, bounds }: Others): Warning[] {
  const isMadeUp = rule.key.flat().some(({ kind }) => kind !== "param" && CHOSEN.has(kind));
  if (!isMadeUp || rule.mode === "shadow" || isForCredentials(rule)) return [];
  if (coverage.isCovered(rule, bounds, (other) => countsAllOf(other, rule))) return [];
  return [
    {
      code: "made-up-keys",
      where: `${place}.key`,
      what: `Who makes up a new key for each request passes the rule "${rule.name}" without a limit`,
      advice:
        'Put a rule beside it with the same match, key: "ip", and a limit for all clients behind one address',
    },
  ];
}

/** By something of which one client cannot have many: an address, a verified claim, nothing at all. */
function isBound({ key, match }: Rule): boolean {
  return key.flat().every(({ kind }) => {
    // One counter for each host that a client names, unless the rule names them.
    if (kind === "host") return match.hosts?.every((host) => !host.startsWith("*")) === true;
    // A client can make up paths, and the TLS fingerprint of its hand-shake.
    return !CHOSEN.has(kind) && kind !== "path" && kind !== "ja4";
  });
}

/** By the address, or by something that many clients share. */
function isByAddress(rule: Rule): boolean {
  return isBound(rule) && rule.key.flat().every(({ kind }) => kind !== "custom");
}

function countsFailures({ countStatus }: Rule): boolean {
  return !countStatus || countStatus.includes(401) || countStatus.includes(403);
}

function countsAllOf(other: Rule, { countStatus }: Rule): boolean {
  if (!other.countStatus) return true;
  return countStatus?.every((status) => other.countStatus?.includes(status)) === true;
}

function exemptsMost({ exempt }: Rule): boolean {
  return exempt?.networks.some(([, bits]) => bits < MIN_EXEMPT_BITS) === true;
}

function exemptWarnings({ name, exempt }: Rule, place: string): Warning[] {
  return (exempt?.headers ?? [])
    .filter(({ value }) => typeof value === "string")
    .map((header) => ({
      code: "exempt-by-text",
      where: `${place}.exempt.headers[${JSON.stringify(header.name)}]`,
      what: `Who can read the source passes the rule "${name}" uncounted`,
      advice: 'Write { secret: "NAME" }, and set that secret',
    }));
}

function tierWarnings({ name, tiers }: Rule, place: string): Warning[] {
  if (!tiers || !hasChosen(tiers.by)) return [];
  return [
    {
      code: "tier-by-client",
      where: `${place}.tiers.by`,
      what: `Clients choose their tier of the rule "${name}" themselves`,
      advice: "Take it from a verified claim (jwt:CLAIM), or from a function (custom:NAME)",
    },
  ];
}

function manyNetworks(bits: number): Warning {
  const networks = bits - 64 < 32 ? 2 ** (bits - 64) : `2^${bits - 64}`;
  return {
    code: "ipv6-prefix",
    where: "ipv6Prefix",
    what: `Whoever has one /64, as every home has, is ${networks} clients`,
    advice: "Set ipv6Prefix to 64 or less",
  };
}

function hasChosen(key: KeyExpression): boolean {
  return key.flat().some(({ kind }) => CHOSEN.has(kind));
}
