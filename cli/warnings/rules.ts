import type { KeyExpression } from "../../src/config/key-expression.ts";
import { splitRoute } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { createMatcher } from "../../src/request/matcher.ts";
import { samplesOf } from "./samples.ts";
import type { Warning } from "./warning.ts";

/** Words of a path behind which credentials are tried. */
const CREDENTIALS = new Set(
  "login logon signin auth authenticate oauth token password passwd passcode otp totp 2fa mfa passkey webauthn reset forgot".split(
    " ",
  ),
);

/** What a client puts into a request as it likes, unless somebody checks it. */
const CHOSEN = new Set(["header", "cookie", "query", "param"]);

/** For each request that shows what a rule is about, all rules that hold for it. */
type Together = readonly (readonly Rule[])[];

/** What in the rules themselves leaves a way around them. */
export function ruleWarnings({ rules, caseSensitivePaths, ipv6Prefix }: Config): Warning[] {
  const matching = createMatcher(rules, caseSensitivePaths);
  const togetherWith = (rule: Rule): Together =>
    samplesOf(rule, caseSensitivePaths).map((sample) =>
      matching(sample).map((match) => match.rule),
    );
  const warnings = rules.flatMap((rule, index) => {
    const place = `rules[${index}]`;
    return [
      ...exceptWarnings(rule, place, togetherWith),
      ...credentialWarnings(rule, place, togetherWith),
      ...madeUpWarnings(rule, place, togetherWith),
      ...exemptWarnings(rule, place),
      ...tierWarnings(rule, place),
    ];
  });
  return ipv6Prefix > 64 ? [...warnings, manyNetworks(ipv6Prefix)] : warnings;
}

function exceptWarnings(
  rule: Rule,
  place: string,
  togetherWith: (rule: Rule) => Together,
): Warning[] {
  if (!rule.match.except) return [];
  const together = togetherWith(rule);
  // Without a sample nothing can be told.
  if (together.length === 0 || together.some((rules) => rules.includes(rule))) return [];
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
    if (segment.startsWith(":")) return false;
    const words = segment.toLowerCase().split(/[^a-z0-9]+/);
    return words.some((word, index) => {
      // sign-in is two words to this, and log-in.
      return CREDENTIALS.has(word) || CREDENTIALS.has(`${word}${words[index + 1] ?? ""}`);
    });
  });
}

function credentialWarnings(
  rule: Rule,
  place: string,
  togetherWith: (rule: Rule) => Together,
): Warning[] {
  const suspects = hasChosen(rule.key) || rule.onError === "open";
  if (!suspects || !isForCredentials(rule)) return [];
  const together = togetherWith(rule).filter((rules) => rules.includes(rule));
  const isEverywhere = (holds: (other: Rule) => boolean) =>
    together.every((rules) => rules.some((other) => other.mode === "enforce" && holds(other)));
  const warnings: Warning[] = [];
  if (hasChosen(rule.key) && !isEverywhere(({ key }) => isByAddress(key))) {
    warnings.push({
      code: "no-address-limit",
      where: `${place}.key`,
      what: `Clients choose what the rule "${rule.name}" counts them by, so each guess can come from a new one`,
      advice: 'Put a rule beside it with the same match and key: "ip"',
    });
  }
  if (!isEverywhere(({ onError }) => onError !== "open")) {
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
function madeUpWarnings(
  rule: Rule,
  place: string,
  togetherWith: (rule: Rule) => Together,
): Warning[] {
  const isMadeUp = rule.key.flat().some(({ kind }) => kind !== "param" && CHOSEN.has(kind));
  if (!isMadeUp || rule.mode === "shadow" || isForCredentials(rule)) return [];
  const together = togetherWith(rule).filter((rules) => rules.includes(rule));
  const isBounded = together.every((rules) =>
    rules.some(({ mode, key }) => mode === "enforce" && isBound(key)),
  );
  if (isBounded) return [];
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
function isBound(key: KeyExpression): boolean {
  return !hasChosen(key) && key.every((parts) => parts.every(({ kind }) => kind !== "path"));
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

/** By the address, or by something that holds for more than one. */
function isByAddress(key: KeyExpression): boolean {
  return (
    !hasChosen(key) &&
    key.every((parts) => parts.every(({ kind }) => kind !== "custom" && kind !== "path"))
  );
}
