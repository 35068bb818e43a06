import type { Rule } from "../config/rule.ts";
import { areTierNamesSecret } from "../config/tier-names.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import type { CostFailure } from "../request/custom-calls.ts";
import type { KeyContext } from "../request/identity.ts";
import type { RuleMatch } from "../request/matcher.ts";
import { type AppliedRule, createRuleApplier } from "../request/rule-applier.ts";
import { type Claims, createClaimsReader } from "../request/token.ts";
import { costSourceOf } from "./cost-source.ts";
import { testExemptions } from "./exemptions.ts";
import type { ExplainContext } from "./explain-context.ts";
import type { ExplainedCondition, ExplainedKeyElement } from "./explanation.ts";
import { explainKey, type KeyFacts } from "./key-elements.ts";
import type { MatchedRule } from "./matching.ts";
import { RememberedCalls } from "./remembered-calls.ts";
import { claimFault } from "./token-fault.ts";

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
