import { inputOf } from "../../src/config/define.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { pathOf } from "../../src/config/faults.ts";
import { isRecord } from "../../src/config/fields.ts";
import type { KeyExpression } from "../../src/config/key.ts";
import { type Rule, withoutConcurrent } from "../../src/config/rule.ts";
import { placedRules } from "../../src/config/rules.ts";
import type { Config } from "../../src/config/schema.ts";
import { found, type LocalFinding } from "../finding.ts";
import { clientHeaderIn, conditionWarnings, isCovered } from "./conditions.ts";
import { costFindings } from "./costs.ts";
import {
  asyncWarnings,
  banWarnings,
  millisecondWarnings,
  unusedLimitWarnings,
  waitWarnings,
  zeroLimitWarnings,
} from "./limits.ts";
import {
  claimWarnings,
  exactPathWarnings,
  isForCredentials,
  lateChargeWarnings,
  MIN_EXEMPT_BITS,
  networkFindings,
  notationWarnings,
  settingWarnings,
} from "./settings.ts";

/** Where a rule is written. */
interface RulePlace {
  /** The path of the rule, such as `rules[0]` or `rules["rules/login.ts"][0]`. */
  readonly path: string;
  /** The name of the rule's file in `rules`; undefined if all rules are in one list. */
  readonly file?: string;
}

/** Returns the place of each rule of a valid configuration, in the order of the rules. */
function rulePlaces(config: Config): readonly RulePlace[] {
  const input = inputOf(config);
  return placedRules(isRecord(input) ? input : {}).map(({ path }): RulePlace => {
    const [, file] = path;
    return { path: pathOf(path), ...(typeof file === "string" && { file }) };
  });
}

/** A rule, and the name of its file if the rules are in several files. */
export interface FiledRule extends Rule {
  readonly file?: string;
}

/** Returns the rules of a valid configuration, with their files. */
export function filedRules(config: Config): readonly FiledRule[] {
  const places = rulePlaces(config);
  return config.rules.map((rule, index) => {
    const file = places[index]?.file;
    return file === undefined ? rule : { file, ...rule };
  });
}

/** An import of node:http would also load `fetch`, and double the time in which Node starts. */
const { METHODS } = process.getBuiltinModule("node:http");

/**
 * Warnings about methods that are probably misspelt. These are no faults, because HTTP allows a method with any name.
 * Node's list contains all methods that IANA has registered and that are in use.
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

/** Rules that can close a gap of another rule, grouped by the kind of gap. */
interface Remedies {
  /** Whether upper and lower case differ in paths. */
  readonly caseSensitive: boolean;
  readonly enforced: readonly Rule[];
  /** Enforced rules that limit failed logins for each address. */
  readonly addressRules: readonly Rule[];
  /** Enforced rules that still limit clients while the store fails. */
  readonly limitingInOutage: readonly Rule[];
  /** Enforced rules in which one client cannot have many counters. */
  readonly boundingRules: readonly Rule[];
}

function remediesIn({ rules, caseSensitivePaths }: Config): Remedies {
  const enforced = rules.filter(
    (rule) =>
      rule.for === "all" && rule.mode === "enforce" && rule.cost !== 0 && !exemptsMost(rule),
  );
  return {
    caseSensitive: caseSensitivePaths,
    enforced,
    addressRules: enforced.filter(
      (rule) => isByAddress(rule) && countsFailures(rule) && hasWindow(rule),
    ),
    limitingInOutage: enforced.filter((rule) => rule.onError !== "open" && hasWindow(rule)),
    boundingRules: enforced.filter(isBounded),
  };
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
 * Returns the warning `made-up-keys` if clients can make up the keys of a rule. It ignores path parameters, because
 * requests for the same resource share a parameter's value. It also ignores rules whose paths receive credentials,
 * because the warning `no-address-limit` covers the keys of these rules, including path parameters. If another rule
 * bounds the clients, a header field with their address is still a mistake: the warning is `client-header` then.
 */
function madeUpKeyWarnings(
  rule: Rule,
  place: string,
  { caseSensitive, boundingRules }: Remedies,
): LocalFinding[] {
  const madeUp = rule.key
    .flat()
    .filter(({ kind }) => kind !== "param" && CHOSEN_BY_CLIENT.has(kind));
  if (madeUp.length === 0) return [];
  const bounding = boundingRules.filter((other) => countsAllOf(other, rule));
  const isBounded =
    rule.mode === "shadow" || isForCredentials(rule) || isCovered(rule, bounding, caseSensitive);
  const header = clientHeaderIn(madeUp);
  if (header) {
    return [
      found(
        isBounded ? "client-header" : "made-up-keys",
        `${place}.key`,
        `The key of the rule "${rule.name}" is the text of the header ${header.name}, and not the ${header.key === "ip" ? "address" : "country"} that Cloudflare reports`,
        `Write key: "${header.key}"`,
      ),
    ];
  }
  if (isBounded) return [];
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

/** Whether the number of requests is limited, not only the number of open requests. */
function hasWindow({ windows }: Rule): boolean {
  return windows.some(({ concurrent }) => !concurrent);
}

function countsAllOf(other: Rule, rule: Rule): boolean {
  const { count } = rule;
  if (hasWindow(rule) && !hasWindow(other)) return false;
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

/** A tier does not inherit `sliding`, so its clients may send twice the limit around the start of a window. */
function fixedTierWarnings({ name, windows, tiers }: Rule, place: string): LocalFinding[] {
  const lengths = windows.flatMap(({ sliding, windowMs }) => (sliding ? windowMs : []));
  const ofTiers = [...(tiers?.windows.values() ?? [])].flat();
  if (!ofTiers.some(({ sliding, windowMs }) => !sliding && lengths.includes(windowMs))) return [];
  const text = `In the rule "${name}", a tier has a fixed window of the length of the rule's sliding window`;
  const cure = "Write sliding into the tier too, or into neither";
  // The name of a tier may be a secret.
  return [found("tier-without-sliding", `${place}.tiers.limits`, text, cure)];
}

function isChosenByClient(key: KeyExpression): boolean {
  return key.flat().some(({ kind }) => CHOSEN_BY_CLIENT.has(kind));
}

/** The checks of one rule, in the order of their findings in the report. */
const RULE_CHECKS: readonly ((
  rule: Rule,
  place: string,
  remedies: Remedies,
) => Iterable<LocalFinding>)[] = [
  ...[unusedLimitWarnings, banWarnings, costFindings, zeroLimitWarnings, fixedTierWarnings].map(
    ofWindows,
  ),
  waitWarnings,
  asyncWarnings,
  methodWarnings,
  notationWarnings,
  exactPathWarnings,
  networkFindings,
  ...[
    credentialWarnings,
    lateChargeWarnings,
    madeUpKeyWarnings,
    exemptWarnings,
    tierWarnings,
    claimWarnings,
  ].map(forRequests),
  conditionWarnings,
];

/** Restricts a check to the limits that have windows. */
function ofWindows(check: (rule: Rule, place: string) => LocalFinding[]) {
  return (rule: Rule, place: string) => check(withoutConcurrent(rule), place);
}

/** Skips a check for rules that count no HTTP requests: programs pass the values of keys. */
function forRequests(check: (rule: Rule, place: string, remedies: Remedies) => LocalFinding[]) {
  return (rule: Rule, place: string, remedies: Remedies) =>
    rule.for === "programs" ? [] : check(rule, place, remedies);
}

/** Returns all findings about a valid configuration, without wrangler's configuration. */
export function configFindings(config: Config): LocalFinding[] {
  const places = rulePlaces(config);
  const remedies = remediesIn(config);
  return [
    ...settingWarnings(config),
    ...millisecondWarnings(inputOf(config)),
    ...config.rules.flatMap((rule, index) =>
      RULE_CHECKS.flatMap((check) => [
        ...check(rule, places[index]?.path ?? `rules[${index}]`, remedies),
      ]),
    ),
  ];
}
