import { decode } from "hono/utils/jwt/jwt";
import type { Cost } from "../config/cost.ts";
import type { JwtConfig } from "../config/jwt.ts";
import type { KeyExpression, KeyPart } from "../config/key.ts";
import type { Rule } from "../config/rule.ts";
import { type Exempt, printableSecretName } from "../config/tiers.ts";
import { isChargedByResponse } from "../limiter/counters.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { ClientLimits } from "../request/client-limits.ts";
import type { CostFailure, CustomFailure } from "../request/custom-calls.ts";
import { createIdentify, type Identified } from "../request/identify.ts";
import { keyPartName, type NamedValue } from "../request/identity.ts";
import type { TestedCondition } from "../request/matcher.ts";
import type { AppliedRule, ClientTrace } from "../request/rule-applier.ts";
import { type Claims, readClaimNumber } from "../request/token.ts";
import { BODYLESS } from "./described-request.ts";
import {
  type ExplainContext,
  type ExplainedCondition,
  type ExplainedKeyElement,
  shownValue,
} from "./explanation.ts";
import { limitSourceOf } from "./limit-source.ts";
import { shownAddress, shownNetworks } from "./matching.ts";

/** A client under a matching rule, or the exemption because of which the rule does not apply. */
export interface ExplainedClient {
  /** The entries of `exempt`, up to the one that exempts the request. */
  readonly conditions: readonly ExplainedCondition[];
  /** Undefined if the rule does not apply. */
  readonly applied: AppliedRule | undefined;
  /** Undefined if the request is exempt. */
  readonly identity: string | undefined;
  readonly key: readonly ExplainedKeyElement[];
  readonly tier: string | undefined;
  readonly costSource: string;
  readonly limitSource: string | undefined;
}

/** The facts that were found while a request was identified. */
export class Findings {
  /** The tested conditions of each rule, by its name. */
  readonly conditions = new Map<string, TestedCondition[]>();
  readonly clients = new Map<Rule, ClientTrace>();
  readonly costFailures = new Map<string, CostFailure>();
  readonly keyFailures = new Map<string, CustomFailure>();
  limits: ClientLimits | undefined;
  claims: Claims | undefined;
  tokenError: unknown;
}

/**
 * Identifies the clients of a request, by the function with which the gateway does it.
 *
 * @param rules the rules that requests may match
 * @returns undefined under the same conditions as this function
 */
export async function identifyDescribed(
  request: Request,
  rules: readonly Rule[],
  { config, bindings, custom }: ExplainContext,
  overrides: LiveOverrides,
) {
  const found = new Findings();
  // The functions are asked anew, whatever the isolate knows.
  found.limits = new ClientLimits(config.custom?.limits, {
    timeoutMs: config.timeoutMs,
    background: (task) => custom.ctx.waitUntil(task),
    onUnreadable: () => {},
  });
  const identify = createIdentify({
    config: { ...config, rules },
    bindings,
    overrides,
    background: (task) => custom.ctx.waitUntil(task),
    onKeyFailure: (name, cause) => found.keyFailures.set(name, cause),
    onUnreadableCost: (rule, _source, cause) => found.costFailures.set(rule, cause),
    limits: found.limits,
    trace: {
      onCondition({ name }, tested) {
        found.conditions.set(name, [...(found.conditions.get(name) ?? []), tested]);
      },
      onClient: (rule, client) => found.clients.set(rule, client),
      onToken(claims, error) {
        found.claims = claims;
        found.tokenError = error;
      },
    },
  });
  const identified = await identify(request, { context: custom, arrivedAt: Date.now() });
  identified?.close();
  return identified && { identified, found };
}

/** Explains the clients of a request. @returns the clients, by the names of their rules */
export async function explainClients(
  request: Request,
  { canonical, clients, appliedRules }: Identified,
  found: Findings,
  { config: { jwt, timeoutMs }, bindings }: ExplainContext,
): Promise<Map<string, ExplainedClient>> {
  const all = await withPending(clients);
  const limited = await withPending(appliedRules);
  const facts = { request: canonical, jwt, bindings, timeoutMs, lacksBody: lacksBody(request) };
  return new Map(
    [...found.clients].map(([rule, { exemption, values = [] }]): [string, ExplainedClient] => {
      const own = all.find((each) => each.rule === rule);
      const conditions = rule.exempt
        ? exemptionsOf(rule.exempt, exemption, canonical, bindings.secrets)
        : [];
      if (!own) return [rule.name, { ...EXEMPT, conditions }];
      const client = {
        conditions,
        applied: limited.find((each) => each.rule === rule),
        identity: own.identity,
        key: explainKey(rule.key, values, (part) => absence(part, found, facts)),
        tier: own.tier,
        costSource: costSourceOf(rule, found.costFailures.get(rule.name)),
        limitSource: limitSourceOf(own.declared ?? own.windows, (source) =>
          source.from.kind === "jwt"
            ? found.claims && readClaimNumber(found.claims, source.from)
            : found.limits?.answerOf(source, own.identity),
        ),
      };
      return [rule.name, client];
    }),
  );
}

/** Waits for rules in shadow mode whose clients are identified later. */
async function withPending(appliedRules: readonly AppliedRule[]): Promise<AppliedRule[]> {
  return (await Promise.all(appliedRules.map((each) => each.pendingRules ?? [each]))).flat();
}

const EXEMPT = {
  applied: undefined,
  identity: undefined,
  key: [],
  tier: undefined,
  costSource: "",
  limitSource: undefined,
} as const;

/** Whether a description has no body although the request may have one. */
function lacksBody({ body, method }: Request): boolean {
  return body === null && !BODYLESS.includes(method);
}

/**
 * Returns the entries of `exempt` in the order in which Weir tests them. The texts contain no secret.
 *
 * @param exemption the entry that exempts the request; undefined if no entry does
 */
function exemptionsOf(
  { networks, headers }: Exempt,
  exemption: string | undefined,
  request: CanonicalRequest,
  secrets: ReadonlyMap<string, string>,
): ExplainedCondition[] {
  const ips = {
    entry: "ips",
    actual: shownAddress(request.headers),
    expected: shownNetworks(networks),
  };
  const entries = headers.map(({ name, value }) => ({
    entry: `headers.${name}`,
    actual: request.headers.has(name) ? "a value" : "absent",
    expected: typeof value === "string" ? "a text (not shown)" : shownSecret(value.secret, secrets),
  }));
  const all = networks.size > 0 ? [ips, ...entries] : entries;
  const last = all.findIndex(({ entry }) => entry === exemption);
  return all.slice(0, last === -1 ? undefined : last + 1).map(({ entry, ...texts }, index) => ({
    field: `exempt.${entry}`,
    result: index === last ? "holds" : "fails",
    ...texts,
  }));
}

function shownSecret(name: string, secrets: ReadonlyMap<string, string>): string {
  const shown = `the value of the secret ${printableSecretName(name)}`;
  return secrets.has(name) ? shown : `${shown}, which is not set`;
}

/**
 * Returns the sources of a key's values, in the order in which Weir looks for values.
 *
 * @param values the value of each element
 * @param absenceOf returns the reason why the request lacks an alternative, as a part of a sentence
 */
function explainKey(
  key: KeyExpression,
  values: readonly NamedValue[],
  absenceOf: (part: KeyPart) => string,
): ExplainedKeyElement[] {
  return key.map((alternatives, index) => {
    const { name, value = "" } = values[index] ?? {};
    const used = alternatives.findIndex((part) => keyPartName(part) === name);
    const tried = used === -1 ? alternatives : alternatives.slice(0, used + 1);
    return {
      alternatives: tried.map((part, at) => ({
        part: keyPartName(part),
        ...(at === used
          ? { result: "used", from: sourceOf(part), value: shownValue(part, value) }
          : { result: "absent", from: absenceOf(part) }),
      })),
      isFallback: used === -1,
    };
  });
}

function sourceOf(part: KeyPart): string {
  switch (part.kind) {
    case "header":
      return `the header ${part.name}`;
    case "cookie":
      return `the cookie ${part.name}`;
    case "query":
      return `the query parameter ${part.name}`;
    case "param":
      return `the path parameter ${part.name}`;
    case "jwt":
      return `the claim ${part.name} of the verified token`;
    case "custom":
      return `the function custom.keys.${part.name}`;
    case "ip":
      return "the header cf-connecting-ip";
    case "country":
    case "asn":
    case "ja4":
      return "Cloudflare's data about the client";
    case "global":
      return "no value: all clients share one counter";
    default:
      return `the ${part.kind} of the request`;
  }
}

interface AbsenceFacts {
  readonly request: CanonicalRequest;
  readonly jwt: JwtConfig | undefined;
  readonly bindings: ExplainContext["bindings"];
  readonly timeoutMs: number;
  readonly lacksBody: boolean;
}

/** Returns the reason why the request lacks a part of a key, as a part of a sentence. */
function absence(part: KeyPart, found: Findings, facts: AbsenceFacts): string {
  switch (part.kind) {
    case "header":
      return facts.request.headers.has(part.name)
        ? "the header is empty or too long, or origins may read different values"
        : "the header is missing";
    case "cookie":
    case "query":
      return "it is missing, empty or too long, or origins may read different values";
    case "param":
    case "path":
      return "the path has no such value, or origins may read the path in different ways";
    case "jwt":
      return claimFault(part.name, found, facts);
    case "custom":
      return functionFault(part.name, found.keyFailures.get(part.name), facts);
    default:
      return "Cloudflare's data about the client does not have it";
  }
}

function functionFault(
  name: string,
  failure: CustomFailure | undefined,
  { timeoutMs, lacksBody }: AbsenceFacts,
): string {
  if (failure === "timeout") return `custom.keys.${name} took longer than ${timeoutMs} ms`;
  // The function may need the body, which descriptions often lack.
  const note = lacksBody ? "; this request is explained without a body" : "";
  return failure === "threw"
    ? `custom.keys.${name} threw an error${note}`
    : `custom.keys.${name} returned no text, or an empty or too long one${note}`;
}

/**
 * The reasons why a token is invalid, by the names of Hono's errors. The messages of these errors quote the token.
 */
const FAULTS: Readonly<Record<string, string>> = {
  JwtTokenExpired: "the token has expired (exp)",
  JwtTokenNotBefore: "the token is not valid yet (nbf)",
  JwtTokenIssuedAt: "the token was issued in the future (iat)",
  JwtTokenIssuer: "the token's issuer (iss) is not the configured one",
  JwtTokenAudience: "the token's audience (aud) is not the configured one",
  JwtPayloadRequiresAud: "the token has no audience (aud)",
  JwtTokenSignatureMismatched: "the token's signature is not valid",
  JwtTokenInvalid: "the header has no JWT",
  JwtHeaderInvalid: "the token's header is not that of a JWT",
  JwtAlgorithmMismatch: "the token's algorithm (alg) is not the configured one",
};

/** Returns the reason why a request lacks a claim, as a part of a sentence without any part of the token. */
function claimFault(name: string, { claims, tokenError }: Findings, facts: AbsenceFacts): string {
  const { jwt, request, bindings } = facts;
  if (claims) {
    return `the token is valid, but its claim ${name} is missing, or no text or whole number`;
  }
  if (!jwt) return "the configuration has no jwt";
  const value = request.headers.get(jwt.header);
  if (!value) return `the header ${jwt.header} is missing`;
  if (jwt.kind === "secret" && !bindings.secrets.get(jwt.secret)) {
    return `the secret ${printableSecretName(jwt.secret)} is not set`;
  }
  if (tokenError !== undefined) {
    const fault = tokenError instanceof Error ? FAULTS[tokenError.name] : undefined;
    return fault ?? "the token cannot be verified";
  }
  const token = jwt.header === "authorization" ? /^Bearer +(\S+)$/i.exec(value)?.[1] : value;
  if (!token) return `the header ${jwt.header} has no Bearer token`;
  return jwt.kind === "jwks" ? keyFault(token, jwt.algs) : "the token is too long";
}

/** Returns the reason why no key of the issuer fits a token. */
function keyFault(token: string, algs: readonly string[]): string {
  try {
    const { alg, kid } = decode(token).header;
    if (!algs.some((each) => each === alg)) {
      return `the token's algorithm is not ${algs.join(" or ")}`;
    }
    if (!kid) return "the token does not name its key (kid)";
    return "the issuer's keys could not be fetched, or have none with the token's kid and algorithm";
  } catch {
    return "the header has no JWT";
  }
}

/** The reasons why a cost is unknown, as parts of sentences. */
const FAILURES: Readonly<Record<CostFailure, string>> = {
  timeout: "the function took too long",
  threw: "the function threw an error",
  missing: "the request does not have it",
  invalid: "it is no whole number",
};

/**
 * Returns the source of a request's cost under a rule.
 *
 * @param failure the reason why the request's value for the cost could not be read; undefined if it could be read
 */
function costSourceOf(rule: Rule, failure: CostFailure | undefined): string {
  const { cost, count } = rule;
  const before = sourceBefore(cost);
  const settle = typeof cost === "object" ? cost.settle : undefined;
  const parts = [
    failure ? `${before} is unknown, because ${FAILURES[failure]}` : before,
    count && `only responses with the status ${count.statuses.join(", ")} are charged`,
    settle && `settled by ${settle.kind}:${settle.name} of the response`,
    isChargedByResponse(rule) && "nothing is charged before the response",
  ];
  return parts.filter(Boolean).join("; ");
}

function sourceBefore(cost: Cost): string {
  if (typeof cost === "number") return `cost: ${cost}`;
  const { before } = cost;
  if (before === undefined) return "a quota of 1 must be left";
  if (typeof before === "number") return `reserve: ${before}`;
  return before.kind === "body" ? "body:bytes" : `custom:${before.name}`;
}
