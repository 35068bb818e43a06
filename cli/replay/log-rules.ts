import { createHash } from "node:crypto";
import { isIPv4 } from "node:net";
import type { KeyPart } from "../../src/config/key.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { mayBeCredential } from "../../src/config/tiers.ts";
import { placeOf, readsOwnQuotas } from "../../src/request/canonical-request.ts";
import {
  encodeValues,
  type NamedValue,
  type RequestContext,
  valueIn,
} from "../../src/request/identity.ts";
import { createMatcher, type Matcher, type RuleMatch } from "../../src/request/matcher.ts";
import { type SentNames, sentNamesOf } from "../../src/request/sent-values.ts";
import { type LogFacts, type LogRequest, ownText } from "../logs/log-request.ts";
import {
  preflightNote,
  type ReportNote,
  refusedNote,
  showsPreflights,
  withoutAddressNote,
} from "../logs/needs.ts";
import { LoggedRequest, urlOf } from "./logged-request.ts";

// The rules that match logged requests, and their clients, by the code of the Worker. The Worker's own applier
// (src/request/rule-applier.ts) returns promises, and does not return the values that reports show.

/** The settings that decide which rules match. */
export type MatchConfig = Pick<Config, "ipv6Prefix" | "caseSensitivePaths" | "quotaPath">;

/** A rule that matches a request, and the client under this rule. */
export interface LogClient {
  readonly rule: Rule;
  /** A text that is different for each client. */
  readonly identity: string;
  /** The client as reports show it. */
  readonly text: string;
  readonly request: LoggedRequest;
  readonly context: RequestContext;
}

/** A value of a key, with the part of the key that it comes from. */
interface KeyValue extends NamedValue {
  readonly part: KeyPart;
}

const ADDRESS: readonly KeyPart[] = [{ kind: "ip" }];
/** The value of the part `ip` for requests without a valid address. */
const UNKNOWN_ADDRESS = "unknown";

/** Finds the rules that match the requests of a log, and their clients. */
export class LogRules {
  readonly #match: Matcher;
  readonly #config: MatchConfig;
  readonly #countsUnknownAddress: boolean;
  readonly #showsPreflights: boolean;
  readonly #names: SentNames | undefined;
  /** The number of requests that the Worker refuses before it reads the rules. */
  #refused = 0;
  /** The number of OPTIONS requests that count as preflights because the log does not show their kind. */
  #assumedPreflights = 0;
  /** The number of requests without an identity, by rule: the rule needs their address, which is unknown. */
  readonly #withoutAddress = new Map<Rule, number>();

  /** @param missingAsAbsent whether values that the log does not state count as absent */
  constructor(
    config: MatchConfig,
    rules: readonly Rule[],
    facts: LogFacts,
    missingAsAbsent: boolean,
  ) {
    this.#config = config;
    this.#countsUnknownAddress = missingAsAbsent && !facts.has("ip");
    this.#showsPreflights = showsPreflights(facts);
    this.#match = createMatcher(rules, config.caseSensitivePaths);
    this.#names = sentNamesOf(rules);
  }

  /** @returns undefined if the Worker refuses the request before it reads the rules */
  clientsOf(logged: LogRequest): LogClient[] | undefined {
    const place = placeOf(urlOf(logged.host, logged.target), this.#config.caseSensitivePaths);
    if (!place) {
      this.#refused++;
      return undefined;
    }
    const request = new LoggedRequest(logged, place, this.#showsPreflights, this.#names);
    if (readsOwnQuotas(request, this.#config)) return [];
    if (request.isPreflight && !this.#showsPreflights) this.#assumedPreflights++;
    return this.#match(request).flatMap((match) => this.#clientOf(request, match) ?? []);
  }

  /** Tokens and functions count as absent. @returns undefined if the rule needs an unknown address */
  #clientOf(request: LoggedRequest, { rule, path, params }: RuleMatch): LogClient | undefined {
    const context = { request, path, params, ipv6Prefix: this.#config.ipv6Prefix };
    const values = rule.key.map(
      (alternatives) => firstValue(alternatives, context) ?? firstValue(ADDRESS, context),
    ) as KeyValue[];
    const { ips, except } = rule.match;
    const readsAddress = ips !== undefined || except?.ips !== undefined;
    const isUnknown =
      (readsAddress && !request.headers.has("cf-connecting-ip")) ||
      values.some(({ part, value }) => part.kind === "ip" && value === UNKNOWN_ADDRESS);
    if (isUnknown && !this.#countsUnknownAddress) {
      this.#withoutAddress.set(rule, (this.#withoutAddress.get(rule) ?? 0) + 1);
      return undefined;
    }
    const text = values.map(({ part, value }) => clientText(part, value)).join(", ");
    return { rule, identity: identityIn(rule, values), text, request, context };
  }

  /**
   * Returns the notes that only the end of a log shows.
   *
   * @param fate the report's treatment of refused requests, as the end of a sentence
   */
  notes(fate?: string): ReportNote[] {
    const notes: ReportNote[] = [];
    if (this.#refused > 0) notes.push(refusedNote(this.#refused, fate));
    if (this.#assumedPreflights > 0) notes.push(preflightNote(this.#assumedPreflights));
    for (const [rule, number] of this.#withoutAddress) {
      notes.push(withoutAddressNote(rule, number));
    }
    return notes;
  }
}

/** Returns the first alternative that a request has. */
export function firstValue(
  alternatives: readonly KeyPart[],
  context: RequestContext,
): KeyValue | undefined {
  for (const part of alternatives) {
    const address = part.kind === "ip" ? context.request.headers.get("cf-connecting-ip") : null;
    // Most addresses are canonical already, and parsing them takes long.
    if (address !== null && isIPv4(address)) return { name: "ip", value: address, part };
    const present = valueIn(part, context);
    if (present) return { ...present, part };
  }
  return undefined;
}

/** The maximum length of an identity, in characters. A longer one is replaced by its hash. */
const MAX_IDENTITY = 128;

/** The Worker's identity is a hash, on which only the windows of `start: "spread"` depend. */
function identityIn(rule: Rule, values: readonly KeyValue[]): string {
  const encoded = encodeValues(values);
  return rule.spread || encoded.length > MAX_IDENTITY ? identityHash(encoded) : encoded;
}

/** The number of bytes of a hash that form an identity, as in src/request/identity.ts. */
const IDENTITY_BYTES = 16;

/** Returns the identity that a Worker without WEIR_KEY_SECRET has for the encoded values of a key. */
export function identityHash(encodedValues: string): string {
  const bytes = createHash("sha256").update(encodedValues).digest();
  return bytes.toString("base64url", 0, IDENTITY_BYTES);
}

/** Headers of browsers that never contain credentials. A referer may, in its path or query. */
const HARMLESS_HEADERS = /^(?:user-agent|origin|host|dnt|accept(?:-[a-z]+)*|sec-[a-z-]+)$/;
/** The maximum length of a value in a report, in characters. */
const MAX_LENGTH = 80;
/** The number of characters of a hash. Two values with the same 60 bits hardly ever occur in a log. */
const HASH_LENGTH = 10;

/**
 * Returns a value of a key as reports show it. A hash replaces most of a value that may be a credential, and the end
 * of a long value.
 */
export function clientText(part: KeyPart, value: string): string {
  if (isSecret(part)) return shortened(value, Math.min(4, Math.floor(value.length / 4)));
  return value.length > MAX_LENGTH ? shortened(value, MAX_LENGTH / 2) : ownText(value);
}

function isSecret(part: KeyPart): boolean {
  if (part.kind === "param" || !mayBeCredential(part)) return false;
  return !(part.kind === "header" && HARMLESS_HEADERS.test(part.name));
}

function shortened(value: string, length: number): string {
  const hash = createHash("sha256").update(value).digest("base64url").slice(0, HASH_LENGTH);
  return `${value.slice(0, length)}…${hash}`;
}
