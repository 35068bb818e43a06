import type { CustomContext } from "./config/custom.ts";
import type { KeyExpression } from "./config/key.ts";
import type { Rule } from "./config/rule.ts";
import type { Config } from "./config/schema.ts";
import { quotasResponse, tooManyReadsResponse, undecidedResponse } from "./http/responses.ts";
import type { Limiter } from "./limiter/limiter.ts";
import type { LiveOverrides } from "./overrides/live-overrides.ts";
import { canonicalRequest, placeOf } from "./request/canonical-request.ts";
import { CustomCalls } from "./request/custom-calls.ts";
import { clientAddress } from "./request/headers.ts";
import { createMatcher, type Matcher } from "./request/matcher.ts";
import { canonicalPath } from "./request/path.ts";
import type { RuleApplier } from "./request/rule-applier.ts";
import type { SentNames } from "./request/sent-values.ts";
import { createMemoryStore } from "./stores/memory-store.ts";

/** The number of answers that an isolate gives to one address in a minute. Each answer takes a call to the store. */
const MAX_READS = 60;
const MINUTE_MS = 60_000;
/** The maximum number of addresses whose reads are counted. They take about 6 MB. */
const MAX_ADDRESSES = 20_000;
/** The maximum number of rules that an answer shows. */
const MAX_RULES = 100;

interface QuotaPageOptions {
  readonly config: Config;
  readonly limiter: Limiter;
  readonly applyRules: RuleApplier;
  readonly overrides: LiveOverrides | undefined;
  readonly names: SentNames;
}

/**
 * Answers `quotaPath` with the caller's own quotas, and charges nothing. It shows the rules that would count a request
 * of this caller to any path with any method and query. It does not show rules in shadow mode, rules whose clients
 * depend on the path, the method or the query, and rules with shards, because one read would take a call for each.
 */
export class QuotaPage {
  readonly #options: QuotaPageOptions;
  readonly #match: Matcher;
  readonly #path: string;
  readonly #reads = createMemoryStore(MAX_ADDRESSES);

  /** @param path the field `quotaPath` of the configuration */
  constructor(path: string, options: QuotaPageOptions) {
    const { config } = options;
    this.#options = options;
    this.#path = canonicalPath(path, config.caseSensitivePaths).path;
    const rules = config.rules.filter(isForEveryPath).slice(0, MAX_RULES).map(withoutPlace);
    this.#match = createMatcher(rules, config.caseSensitivePaths);
  }

  isFor({ method, url }: Request): boolean {
    if (method !== "GET" && method !== "HEAD") return false;
    return placeOf(url, this.#options.config.caseSensitivePaths)?.path === this.#path;
  }

  /** Never rejects. */
  async answer(request: Request, context: CustomContext): Promise<Response> {
    const { config, limiter } = this.#options;
    try {
      const retryAfterMs = await this.#read(request);
      if (retryAfterMs > 0) return tooManyReadsResponse(request, retryAfterMs);
      const appliedRules = await this.#appliedRules(request, context);
      const states = await limiter.clients.readOwn(appliedRules);
      return quotasResponse(request, states, config.headers);
    } catch {
      return undecidedResponse(request);
    }
  }

  /** Counts a read. @returns the time in milliseconds after which the caller may read again; 0 if it may read now */
  async #read({ headers }: Request): Promise<number> {
    const identity = clientAddress(headers, this.#options.config.ipv6Prefix);
    const limits = { limit: MAX_READS, ceiling: MAX_READS, windowMs: MINUTE_MS, offsetMs: 0 };
    const [answered] = this.#reads.decide([[{ key: identity, identity, cost: 1, ...limits }]]);
    // If the memory is full, the caller is not counted and gets no answer.
    const answer = await answered?.catch(() => undefined);
    return answer?.admitted ? 0 : (answer?.tallies[0]?.resetMs ?? MINUTE_MS);
  }

  async #appliedRules(request: Request, context: CustomContext) {
    const { config, applyRules, overrides, names } = this.#options;
    const { custom, timeoutMs, caseSensitivePaths } = config;
    const canonical = canonicalRequest(request, caseSensitivePaths, undefined, names);
    if (!canonical) return [];
    const ownMatches = this.#match(canonical);
    const matches = overrides?.matchesOf(ownMatches) ?? ownMatches;
    const calls = { functions: custom ?? {}, request, context, timeoutMs, arrivedAt: Date.now() };
    const applied = await applyRules(
      canonical,
      matches.filter(({ rule }) => rule.mode !== "shadow"),
      new CustomCalls({ ...calls, onKeyFailure: () => {} }),
    );
    const counted = overrides?.clientsOf(applied) ?? applied;
    // Only the windows of the caller's own tier are read.
    return counted.map((each) => ({ ...each, rule: { ...each.rule, tiers: undefined } }));
  }
}

function isForEveryPath({ key, tiers, shards }: Rule): boolean {
  const isPlace = (each: KeyExpression) => each.flat().some(({ kind }) => PLACES.includes(kind));
  return shards === 1 && !isPlace(key) && !(tiers && isPlace(tiers.by));
}

/** The kinds of key whose value is a part of the URL's path or query, or the method. */
const PLACES: readonly string[] = ["param", "path", "method", "query"];

/** Returns the rule without its conditions on the path, the method and the query, and with a cost of 1. */
function withoutPlace({ match, ...rule }: Rule): Rule {
  const { paths: _paths, methods: _methods, query: _query, except, ...others } = match;
  const isExceptPlace = [except?.paths, except?.methods, except?.query].some((each) => each);
  return {
    ...rule,
    match: { ...others, ...(except && !isExceptPlace && { except }) },
    cost: 1,
    count: undefined,
  };
}
