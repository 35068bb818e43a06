import { inputOf } from "../../src/config/define.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { KeyExpression } from "../../src/config/key.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { found, type LocalFinding } from "../finding.ts";
import { cloudflareKeyWarning, rulePath, rulePlaces } from "./client-conditions.ts";
import { conditionWarnings } from "./conditions.ts";
import { costFindings, llmFunctionFindings, responseBodyWarnings } from "./costs.ts";
import { duplicateWarnings, isCovered, neverMatchesWarnings } from "./coverage.ts";
import {
  banWarnings,
  millisecondWarnings,
  timeZoneWarnings,
  unusedLimitWarnings,
  zeroLimitWarnings,
} from "./limits.ts";
import {
  claimWarnings,
  ipv6Warning,
  isForCredentials,
  MIN_EXEMPT_BITS,
  networkFindings,
  notationWarnings,
  settingWarnings,
  tierHostWarnings,
} from "./settings.ts";

/** An import of node:http would also load `fetch`, and double the time in which Node starts. */
const { METHODS } = process.getBuiltinModule("node:http");

/**
 * Warnings about methods that are probably misspelt. HTTP allows a method with any name, so they are
 * no faults. Node's list contains all methods that IANA has registered and that are in use.
 */
function methodWarnings({ name, match }: Rule, place: string): LocalFinding[] {
  return [
    { methods: match.methods, path: `${place}.match.methods` },
    { methods: match.except?.methods, path: `${place}.match.except.methods` },
  ].flatMap(({ methods = [], path }) =>
    methods
      .filter((method) => !METHODS.includes(method))
      .map((method): LocalFinding => {
        const nearest = nearestName(method, METHODS);
        return found(
          "unknown-method",
          path,
          `In the rule "${name}", ${method} is not a method of HTTP, so probably no request has it`,
          /^(all|any|every)$/i.test(method)
            ? "Leave methods out to match every method"
            : nearest
              ? `Write "${nearest}"`
              : 'Write a method such as "POST"',
        );
      }),
  );
}

/** Kinds of key whose value a client can choose freely, unless the origin checks it. */
const CHOSEN_BY_CLIENT = new Set(["header", "cookie", "query", "param"]);

/** Headers with a client's address. */
const ADDRESS_HEADERS: ReadonlySet<string> = new Set([
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "true-client-ip",
  "x-forwarded-for",
  "x-real-ip",
]);

/** Rules that can close a gap of another rule, grouped by the kind of gap. */
interface Remedies {
  /** Whether upper and lower case differ in paths. */
  readonly caseSensitive: boolean;
  /** Enforced rules that limit failed logins for each address. */
  readonly addressRules: readonly Rule[];
  /** Enforced rules that still limit clients while the store fails. */
  readonly limitingInOutage: readonly Rule[];
  /** Enforced rules in which one client cannot have many counters. */
  readonly boundingRules: readonly Rule[];
}

/** Warnings about the rules themselves. */
export function ruleWarnings(config: Config): LocalFinding[] {
  const { rules, caseSensitivePaths, ipv6Prefix } = config;
  const places = rulePlaces(config);
  const enforced = rules.filter(
    (rule) =>
      rule.for === "all" && rule.mode === "enforce" && rule.cost !== 0 && !exemptsMost(rule),
  );
  const remedies: Remedies = {
    caseSensitive: caseSensitivePaths,
    addressRules: enforced.filter((rule) => isByAddress(rule) && countsFailures(rule)),
    limitingInOutage: enforced.filter(({ onError }) => onError !== "open"),
    boundingRules: enforced.filter(isBounded),
  };
  const warnings = rules.flatMap((rule, index) => {
    // Such a rule counts no HTTP requests, and programs pass its keys.
    if (rule.for === "programs") return [];
    const place = rulePath(places, index);
    const inert = neverMatchesWarnings(rule, place, caseSensitivePaths);
    return [
      ...inert,
      ...(inert.length > 0 ? [] : credentialWarnings(rule, place, remedies)),
      ...(inert.length > 0 ? [] : madeUpKeyWarnings(rule, place, remedies)),
      ...exemptWarnings(rule, place),
      ...tierWarnings(rule, place),
      ...claimWarnings(rule, place),
    ];
  });
  return ipv6Prefix > 64 ? [...warnings, ipv6Warning(ipv6Prefix)] : warnings;
}

function credentialWarnings(
  rule: Rule,
  place: string,
  { caseSensitive, addressRules, limitingInOutage }: Remedies,
): LocalFinding[] {
  const suspects = isChosenByClient(rule.key) || rule.onError === "open";
  if (!suspects || !isForCredentials(rule)) return [];
  const warnings: LocalFinding[] = [];
  if (isChosenByClient(rule.key) && !isCovered(rule, addressRules, caseSensitive)) {
    warnings.push(
      found(
        "no-address-limit",
        `${place}.key`,
        `Clients choose the key of the rule "${rule.name}", so they can send each guess with a new key`,
        'Add a rule with the same match and key: "ip"',
      ),
    );
  }
  if (!isCovered(rule, limitingInOutage, caseSensitive)) {
    warnings.push(
      found(
        "fails-open",
        `${place}.onError`,
        `A client that slows the store down can guess without limit: the rule "${rule.name}" is open then`,
        'Set onError: "closed", or "local"',
      ),
    );
  }
  return warnings;
}

/**
 * Returns the warning `made-up-keys` if clients can make up the keys of a rule. It ignores path
 * parameters, because requests for the same resource share their value. It also ignores rules whose
 * paths receive credentials, because the warning `no-address-limit` covers the keys of these rules,
 * including path parameters.
 */
function madeUpKeyWarnings(
  rule: Rule,
  place: string,
  { caseSensitive, boundingRules }: Remedies,
): LocalFinding[] {
  const madeUp = rule.key
    .flat()
    .filter(({ kind }) => kind !== "param" && CHOSEN_BY_CLIENT.has(kind));
  if (madeUp.length === 0 || rule.mode === "shadow" || isForCredentials(rule)) return [];
  const bounding = boundingRules.filter((other) => countsAllOf(other, rule));
  if (isCovered(rule, bounding, caseSensitive)) return [];
  const ofCloudflare = cloudflareKeyWarning(rule.name, madeUp, place);
  if (ofCloudflare) return [ofCloudflare];
  const header = rule.key
    .flat()
    .find((part) => part.kind === "header" && ADDRESS_HEADERS.has(part.name));
  if (header && "name" in header) {
    return [
      found(
        "made-up-keys",
        `${place}.key`,
        `The rule "${rule.name}" counts each address in the header ${header.name} separately, and a client can have a network of IPv6 addresses`,
        'Write key: "ip", which is the address that Cloudflare reports, or its IPv6 network',
      ),
    ];
  }
  return [
    found(
      "made-up-keys",
      `${place}.key`,
      `A client that makes up a new key for each request is not limited by the rule "${rule.name}"`,
      'Add a rule with the same match, key: "ip", and a limit for all clients behind one address',
    ),
  ];
}

/** Whether one client can have only few values of the key, such as addresses or verified claims. */
function isBounded({ key, match }: Rule): boolean {
  return key.flat().every(({ kind }) => {
    // A client can make up hosts, unless the rule lists them.
    if (kind === "host") return match.hosts?.every((host) => !host.startsWith("*")) === true;
    // A client can make up paths, and the fingerprint of its TLS handshake.
    return !CHOSEN_BY_CLIENT.has(kind) && kind !== "path" && kind !== "ja4";
  });
}

/** Whether the key is the address, or a value that many clients share. */
function isByAddress(rule: Rule): boolean {
  return isBounded(rule) && rule.key.flat().every(({ kind }) => kind !== "custom");
}

function countsFailures({ count }: Rule): boolean {
  return !count || count.statuses.includes(401) || count.statuses.includes(403);
}

function countsAllOf(other: Rule, { count }: Rule): boolean {
  if (!other.count) return true;
  return count?.statuses.every((status) => other.count?.statuses.includes(status)) === true;
}

function exemptsMost({ exempt }: Rule): boolean {
  return [...(exempt?.networks ?? [])].some(([, bits]) => bits < MIN_EXEMPT_BITS);
}

function exemptWarnings({ name, exempt }: Rule, place: string): LocalFinding[] {
  return (exempt?.headers ?? [])
    .filter(({ value }) => typeof value === "string")
    .map((header) =>
      found(
        "exempt-by-text",
        `${place}.exempt.headers[${JSON.stringify(header.name)}]`,
        `Everyone who can read the source can send the text, and is exempt from the rule "${name}"`,
        'Write { secret: "NAME" }, and set that secret',
      ),
    );
}

function tierWarnings({ name, tiers }: Rule, place: string): LocalFinding[] {
  if (!tiers || !isChosenByClient(tiers.by)) return [];
  return [
    found(
      "tier-by-client",
      `${place}.tiers.by`,
      `Clients can choose their tier of the rule "${name}"`,
      "Take the tier from a verified claim (jwt:CLAIM) or from a function (custom:NAME)",
    ),
  ];
}

function isChosenByClient(key: KeyExpression): boolean {
  return key.flat().some(({ kind }) => CHOSEN_BY_CLIENT.has(kind));
}

/** The checks of one rule alone, in the order of their findings in the report. */
const RULE_CHECKS: readonly ((rule: Rule, place: string) => Iterable<LocalFinding>)[] = [
  unusedLimitWarnings,
  banWarnings,
  costFindings,
  zeroLimitWarnings,
  tierHostWarnings,
  methodWarnings,
  notationWarnings,
  networkFindings,
  responseBodyWarnings,
  timeZoneWarnings,
];

/**
 * Returns all findings about a valid configuration, without wrangler's configuration.
 *
 * @param routed whether a Hono app may apply each rule to some of its routes only
 */
export function configFindings(config: Config, routed = false): LocalFinding[] {
  const places = rulePlaces(config);
  return [
    ...settingWarnings(config),
    ...millisecondWarnings(inputOf(config)),
    ...config.rules.flatMap((rule, index) =>
      RULE_CHECKS.flatMap((check) => [...check(rule, rulePath(places, index))]),
    ),
    ...llmFunctionFindings(config),
    ...duplicateWarnings(config, routed),
    ...ruleWarnings(config),
    ...conditionWarnings(config),
  ];
}
