import { decode } from "hono/utils/jwt/jwt";
import { NetworkSet } from "../config/address.ts";
import type { Cost, RequestCost } from "../config/cost.ts";
import type { CustomContext, CustomFunctions } from "../config/custom.ts";
import type { JwtConfig } from "../config/jwt.ts";
import type { ClaimPart } from "../config/key.ts";
import type { Rule } from "../config/rule.ts";
import { areTierNamesSecret, type Exempt, printableSecretName } from "../config/tiers.ts";
import { isChargedByResponse } from "../limiter/counters.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { type CostFailure, CustomCalls, type CustomFailure } from "../request/custom-calls.ts";
import type { ReadonlyHeaders } from "../request/headers.ts";
import type { KeyContext } from "../request/identity.ts";
import type { RuleMatch } from "../request/matcher.ts";
import { type AppliedRule, createRuleApplier, isExempt } from "../request/rule-applier.ts";
import { type Claims, createClaimsReader } from "../request/token.ts";
import { shownAddress, shownNetworks } from "./conditions.ts";
import { BODYLESS } from "./described-request.ts";
import type { ExplainContext, ExplainedCondition, ExplainedKeyElement } from "./explanation.ts";
import { explainKey, type KeyFacts } from "./key-elements.ts";
import type { MatchedRule } from "./matching.ts";

/** The reasons why a token is invalid, by the names of Hono's errors, whose messages quote the token. */
const FAULTS: Readonly<Record<string, string>> = {
  JwtTokenExpired: "the token has expired (exp)",
  JwtTokenNotBefore: "the token is not valid yet (nbf)",
  JwtTokenIssuer: "the token's issuer (iss) is not the configured one",
  JwtTokenAudience: "the token's audience (aud) is not the configured one",
  JwtPayloadRequiresAud: "the token has no audience (aud)",
  JwtTokenSignatureMismatched: "the token's signature is not valid",
  JwtTokenInvalid: "the header field has no JWT",
  JwtHeaderInvalid: "the token's header is not that of a JWT",
  JwtAlgorithmMismatch: "the token's algorithm (alg) is not the configured one",
};

/**
 * Returns why a request has no claim, as a part of a sentence. It contains no part of the token.
 *
 * @param claims the claims of the verified token; undefined if it is missing or invalid
 * @param error the error with which the verification has ended, if it has
 */
function claimFault(
  part: ClaimPart,
  claims: Claims | undefined,
  error: unknown,
  { jwt, secrets, headers }: TokenFacts,
): string {
  if (claims)
    return `the token is valid, but its claim ${part.name} is missing, or no text or whole number`;
  if (!jwt) return "the configuration has no jwt";
  const value = headers.get(jwt.header);
  if (!value) return `the header field ${jwt.header} is missing`;
  if (jwt.kind === "secret" && !secrets.get(jwt.secret)) {
    return `the secret ${printableSecretName(jwt.secret)} is not set`;
  }
  if (error !== undefined) {
    const name = error instanceof Error ? error.name : "";
    return FAULTS[name] ?? "the token cannot be verified";
  }
  const token = jwt.header === "authorization" ? /^Bearer +(\S+)$/i.exec(value)?.[1] : value;
  if (!token) return `the header field ${jwt.header} has no Bearer token`;
  return jwt.kind === "jwks" ? keyFault(token, jwt.algs) : "the token is too long";
}

/** What an explanation needs to know about tokens. */
interface TokenFacts {
  readonly jwt: JwtConfig | undefined;
  readonly secrets: ReadonlyMap<string, string>;
  readonly headers: ReadonlyHeaders;
}

/** Returns why no key of the issuer fits a token. */
function keyFault(token: string, algs: readonly string[]): string {
  try {
    const { alg, kid } = decode(token).header;
    if (!algs.some((each) => each === alg))
      return `the token's algorithm is not ${algs.join(" or ")}`;
    if (!kid) return "the token does not name its key (kid)";
    return "the issuer's keys could not be fetched, or have none with the token's kid and algorithm";
  } catch {
    return "the header field has no JWT";
  }
}

const NO_NETWORKS = new NetworkSet([], []);

/**
 * Tests each entry of `exempt` on its own, up to the first that exempts the request. The texts contain no
 * secret.
 */
async function testExemptions(
  { networks, headers }: Exempt,
  request: CanonicalRequest,
  secrets: ReadonlyMap<string, string>,
): Promise<ExplainedCondition[]> {
  const tested: ExplainedCondition[] = [];
  const test = async (exempt: Exempt, texts: Omit<ExplainedCondition, "result">) => {
    const holds = await isExempt(exempt, request, secrets, isEqual);
    tested.push({ ...texts, result: holds ? "holds" : "fails" });
    return holds;
  };
  if (networks.size > 0) {
    const actual = shownAddress(request.headers);
    const texts = { field: "exempt.ips", actual, expected: shownNetworks(networks) };
    if (await test({ networks, headers: [] }, texts)) return tested;
  }
  for (const header of headers) {
    const { name, value } = header;
    const actual = request.headers.has(name) ? "a value" : "absent";
    const expected =
      typeof value === "string" ? "a text (not shown)" : shownSecret(value.secret, secrets);
    const texts = { field: `exempt.headers.${name}`, actual, expected };
    if (await test({ networks: NO_NETWORKS, headers: [header] }, texts)) return tested;
  }
  return tested;
}

function shownSecret(name: string, secrets: ReadonlyMap<string, string>): string {
  const shown = printableSecretName(name);
  return secrets.has(name)
    ? `the value of the secret ${shown}`
    : `the value of the secret ${shown}, which is not set`;
}

/**
 * Compares the digests of two texts in a time that does not depend on them. Node has no `timingSafeEqual`
 * in `crypto.subtle`.
 */
async function isEqual(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([digest(one), digest(other)]);
  let difference = 0;
  for (const [index, byte] of first.entries()) difference |= byte ^ (second[index] ?? 0);
  return difference === 0;
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

/** Calls the functions in `custom` for one explanation, and each function at most once. */
class RememberedCalls extends CustomCalls {
  readonly #timeoutMs: number;
  /** Says that a function which reads the body found none. A description often lacks it. */
  readonly #bodyNote: string;
  readonly #failures: Map<string, CustomFailure>;
  readonly #keys = new Map<string, Promise<string | undefined>>();

  constructor(
    functions: CustomFunctions,
    request: Request,
    context: CustomContext,
    timeoutMs: number,
  ) {
    const failures = new Map<string, CustomFailure>();
    super(functions, request, context, timeoutMs, (name, cause) => failures.set(name, cause));
    this.#failures = failures;
    this.#timeoutMs = timeoutMs;
    const lacksBody = request.body === null && !BODYLESS.includes(request.method);
    this.#bodyNote = lacksBody ? "; this request is explained without a body" : "";
  }

  override computeKey(name: string): Promise<string | undefined> {
    const computed = this.#keys.get(name) ?? super.computeKey(name);
    this.#keys.set(name, computed);
    return computed;
  }

  /** Returns why the result of a function is absent, as a part of a sentence. */
  keyFault(name: string): string {
    switch (this.#failures.get(name)) {
      case "timeout":
        return `custom.keys.${name} took longer than ${this.#timeoutMs} ms`;
      case "threw":
        return `custom.keys.${name} threw an error${this.#bodyNote}`;
      default:
        return `custom.keys.${name} returned no text, or an empty or too long one${this.#bodyNote}`;
    }
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
 * Returns what determines the cost of a request under a rule.
 *
 * @param failure why the cost before the request could not be read, if it could not
 */
function costSourceOf(rule: Rule, failure: CostFailure | undefined): string {
  const { cost, count } = rule;
  const before = sourceBefore(cost);
  const parts = [
    failure ? `${before} is unknown, because ${FAILURES[failure]}` : before,
    count && `only responses with the status ${count.statuses.join(", ")} are charged`,
    typeof cost === "object" &&
      cost.settle &&
      `settled by ${cost.settle.kind}:${cost.settle.name} of the response`,
    isChargedByResponse(rule) && "nothing is charged before the response",
  ];
  return parts.filter(Boolean).join("; ");
}

function sourceBefore(cost: Cost): string {
  if (typeof cost === "number") return `cost: ${cost}`;
  const { before } = cost;
  if (before === undefined) return "a quota of 1 must be left";
  return typeof before === "number" ? `reserve: ${before}` : nameOf(before);
}

function nameOf(source: RequestCost): string {
  return source.kind === "body" ? "body:bytes" : `custom:${source.name}`;
}

/** A client under a rule that matches, or the exemption because of which the rule does not apply. */
export interface IdentifiedClient {
  /** The tested entries of `exempt`. */
  readonly conditions: readonly ExplainedCondition[];
  /** Undefined if the rule does not apply. */
  readonly applied: AppliedRule | undefined;
  /** Undefined if the request is exempt. */
  readonly identity: string | undefined;
  readonly key: readonly ExplainedKeyElement[];
  readonly tier: string | undefined;
  readonly costSource: string;
}

/** Identifies the client of a request, as the gateway does, and notes where the values came from. */
export class IdentifiedRequest {
  readonly #canonical: CanonicalRequest;
  readonly #context: ExplainContext;
  readonly #live: LiveOverrides;
  readonly #now: number;
  readonly #calls: RememberedCalls;
  readonly #costFailures = new Map<string, CostFailure>();
  readonly #keys = new Map<string, Promise<ExplainedKeyElement[]>>();
  #claims: Promise<Claims | undefined> | undefined;
  #tokenError: unknown;

  constructor(
    request: Request,
    canonical: CanonicalRequest,
    context: ExplainContext,
    live: LiveOverrides,
    now: number,
  ) {
    const { config, custom } = context;
    this.#canonical = canonical;
    this.#context = context;
    this.#live = live;
    this.#now = now;
    this.#calls = new RememberedCalls(config.custom ?? {}, request, custom, config.timeoutMs);
  }

  /** Returns the clients of the rules that match, by the rules of the configuration. */
  async clientsOf(matched: readonly MatchedRule[]): Promise<Map<Rule, IdentifiedClient>> {
    const { config, bindings } = this.#context;
    const found: { rule: Rule; match: RuleMatch; conditions: ExplainedCondition[] }[] = [];
    const clients = new Map<Rule, IdentifiedClient>();
    for (const { rule, match } of matched) {
      if (!match) continue;
      const { exempt } = match.rule;
      const conditions = exempt
        ? await testExemptions(exempt, this.#canonical, bindings.secrets)
        : [];
      if (conditions.at(-1)?.result === "holds") clients.set(rule, { ...EXEMPT, conditions });
      else found.push({ rule, match, conditions });
    }
    const onUnreadableCost = (rule: string, _source: string, cause: CostFailure) => {
      this.#costFailures.set(rule, cause);
    };
    const readClaims = () => this.#readClaims();
    const apply = createRuleApplier(config, bindings, onUnreadableCost, readClaims);
    // The exemptions are tested above. A rule in shadow mode may be identified later, so it is identified as
    // an enforced rule.
    const matches = found.map(({ match }): RuleMatch => {
      return { ...match, rule: { ...match.rule, mode: "enforce", exempt: undefined } };
    });
    const applied = await apply(this.#canonical, matches, this.#calls);
    for (const [index, { rule, match, conditions }] of found.entries()) {
      const own = { ...(applied[index] as AppliedRule), rule: match.rule };
      clients.set(rule, { ...(await this.#clientOf(own, match)), conditions });
    }
    return clients;
  }

  async #clientOf(own: AppliedRule, match: RuleMatch) {
    const { rule, identity } = own;
    const [applied] = this.#live.clientsOf([own], this.#now);
    return {
      applied,
      identity,
      key: await this.#keyOf(rule, match),
      tier: tierOf(own),
      costSource: costSourceOf(rule, this.#costFailures.get(rule.name)),
    };
  }

  /** Explains each key once, because many rules may have the same. */
  #keyOf({ key }: Rule, match: RuleMatch): Promise<ExplainedKeyElement[]> {
    const readsPath = key.flat().some(({ kind }) => kind === "param" || kind === "path");
    const id = JSON.stringify([key, readsPath && [match.path, match.params]]);
    const explained = this.#keys.get(id) ?? explainKey(key, this.#keyFacts(match));
    this.#keys.set(id, explained);
    return explained;
  }

  #keyFacts({ path, params }: RuleMatch): KeyFacts {
    const { config, bindings } = this.#context;
    const context: KeyContext = {
      request: this.#canonical,
      path,
      params,
      ipv6Prefix: config.ipv6Prefix,
      keySecret: bindings.keySecret,
      readClaims: () => this.#readClaims(),
      computeCustom: (name) => this.#calls.computeKey(name),
    };
    const { headers } = this.#canonical;
    const tokenFacts = { jwt: config.jwt, secrets: bindings.secrets, headers };
    return {
      context,
      claimFault: async (part) =>
        claimFault(part, await this.#readClaims(), this.#tokenError, tokenFacts),
      customFault: (name) => this.#calls.keyFault(name),
    };
  }

  /** Verifies the token once. */
  #readClaims(): Promise<Claims | undefined> {
    this.#claims ??= this.#verify();
    return this.#claims;
  }

  async #verify(): Promise<Claims | undefined> {
    const { config, bindings, custom } = this.#context;
    const { jwt, timeoutMs } = config;
    if (!jwt) return undefined;
    const keepAlive = (task: Promise<void>) => custom.ctx.waitUntil(task);
    const readClaims = createClaimsReader(jwt, bindings.secrets, timeoutMs, keepAlive, (error) => {
      this.#tokenError = error;
    });
    return readClaims(this.#canonical.headers);
  }
}

const EXEMPT = {
  applied: undefined,
  identity: undefined,
  key: [],
  tier: undefined,
  costSource: "",
} as const;

/** Returns the name of the client's tier, or its number if the name may be a credential. */
function tierOf({ rule: { tiers }, windows }: AppliedRule): string | undefined {
  if (!tiers) return undefined;
  const names = [...tiers.windows];
  const index = names.findIndex(([, each]) => each === windows);
  if (index === -1) return undefined;
  return areTierNamesSecret(tiers.by) ? `#${index + 1}` : names[index]?.[0];
}
