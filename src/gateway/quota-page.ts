import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { appendQuotaHeaders, toSeconds } from "../http/response-headers.ts";
import { plainProblem, undecidedResponse } from "../http/responses.ts";
import { costBefore } from "../limiter/counters.ts";
import {
  type Decision,
  type Limited,
  type Quota,
  type RuleVerdict,
  settledVerdictsOf,
} from "../limiter/decision.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { placeOf } from "../request/canonical-request.ts";
import { clientAddress } from "../request/headers.ts";
import { LruCache } from "../request/lru-cache.ts";
import type { RuleMatch } from "../request/matcher.ts";
import { canonicalPath } from "../request/path.ts";
import type { AppliedRule } from "../request/rule-applier.ts";

/** The number of reads that an isolate answers for one address in a minute. */
const MAX_READS = 60;
const MINUTE_MS = 60_000;
/** The maximum number of addresses whose reads are counted. They take about 3 MB. */
const MAX_ADDRESSES = 20_000;

const PATH_ALLOWED =
  "path must begin with a slash, such as /search?q=1, with escapes as in any query, and be no longer than rules can match.";
const METHOD_ALLOWED = "method must be a method that Workers receive, such as POST.";

/** The options of a decision that charges nothing, takes no slot, begins no ban and does not wait for its turn. */
export const CHECK = { checkOnly: true } as const;

/**
 * Decides a request with {@link CHECK}, by the matching rules for which `counts` returns true. The decision is
 * undefined if no rule applies, and the whole result if Weir would refuse the request.
 */
type Check = (
  request: Request,
  counts: (rule: Rule) => boolean,
) => Promise<{ appliedRules: readonly AppliedRule[]; decision?: Decision } | undefined>;

/**
 * Answers `quotaPath`. A read is the check of one request of the caller, which the query describes. So it finds what
 * this request would find, by the same rules and the same memory of denials, and costs and shows no more.
 */
export class QuotaPage {
  readonly #config: Config;
  readonly #limiter: Limiter;
  readonly #path: string;
  /** The reads of each address until `endsAt`, in milliseconds since the Unix epoch. */
  readonly #reads = new LruCache<{ readonly endsAt: number; count: number }>(MAX_ADDRESSES);

  /** @param path the field `quotaPath` of the configuration */
  constructor(path: string, config: Config, limiter: Limiter) {
    this.#config = config;
    this.#limiter = limiter;
    this.#path = canonicalPath(path, config.caseSensitivePaths).path;
  }

  isFor({ method, url }: Request): boolean {
    if (method !== "GET" && method !== "HEAD") return false;
    return placeOf(url, this.#config.caseSensitivePaths)?.path === this.#path;
  }

  /** Never rejects. */
  async answer(request: Request, check: Check): Promise<Response> {
    // Without `Origin`, no other site's page may read the response: it would see how its visitor uses this site.
    const asked = new Request(request.url, { method: request.method });
    try {
      const waitSeconds = this.#countRead(request);
      if (waitSeconds > 0) return tooManyReads(asked, waitSeconds);
      const { searchParams } = new URL(request.url);
      const described = describedIn(request, searchParams);
      const isForOnePath = searchParams.has("path");
      const isRead = isForOnePath && described && this.isFor(described);
      const counts = isForOnePath ? () => !isRead : isForEveryPath;
      const checked = described && (await check(described, counts));
      if (!checked) {
        const isMethod = searchParams.has("method") && !isMethodOf(request, methodIn(searchParams));
        const allowed = isMethod ? METHOD_ALLOWED : PATH_ALLOWED;
        return plainProblem(asked, 400, "Bad Request", allowed);
      }
      const { appliedRules, decision } = checked;
      const isUndecided = decision?.outcome === "undecided" || decision?.storeFailure;
      if (isUndecided) return undecidedResponse(asked);
      const denial = decision?.outcome === "limited" ? decision : undefined;
      const verdicts = await settledVerdictsOf(decision?.verdicts ?? []);
      // A denial from memory leaves out the rules with the mode `mark`.
      const marks = appliedRules.filter(
        ({ rule }) =>
          rule.mode === "mark" && !verdicts.some(({ appliedRule }) => appliedRule.rule === rule),
      );
      const marked = marks.length > 0 ? await this.#limiter.decide(marks, CHECK) : undefined;
      const others = marked && "verdicts" in marked ? marked.verdicts : [];
      return this.#response(asked, [...verdicts, ...others], denial);
    } catch {
      return undecidedResponse(asked);
    }
  }

  /** Counts a read. @returns the seconds after which the address may read again; 0 if it may read now */
  #countRead({ headers }: Request): number {
    const address = clientAddress(headers, this.#config.ipv6Prefix);
    const now = Date.now();
    const reads = this.#reads.get(address);
    const leftMs = reads ? reads.endsAt - now : 0;
    // More than a minute is left only if the clock has gone back.
    if (!reads || leftMs <= 0 || leftMs > MINUTE_MS) {
      this.#reads.set(address, { endsAt: now + MINUTE_MS, count: 1 });
      return 0;
    }
    reads.count += 1;
    return reads.count > MAX_READS ? toSeconds(leftMs) : 0;
  }

  #response(asked: Request, verdicts: readonly RuleVerdict[], denial: Limited | undefined) {
    const { headers: style } = this.#config;
    const limits = verdicts.flatMap((each) => each.quotas.map(limitOf));
    const retryMs = denial?.retryAfterMs;
    const response = Response.json({
      allowed: !denial,
      ...(retryMs !== undefined && { retryAfter: toSeconds(retryMs) }),
      // With the other styles, the fields of responses name no policy.
      limits: style === "draft-11" || style === "both" ? limits : [],
    });
    response.headers.set("Cache-Control", "no-store");
    const quotas = verdicts.flatMap((each) => each.quotas);
    appendQuotaHeaders(response.headers, quotas, style);
    return asked.method === "HEAD" ? new Response(null, response) : response;
  }
}

function isMethodOf({ url }: Request, method: string): boolean {
  try {
    return Boolean(new Request(url, { method }));
  } catch {
    return false;
  }
}

function methodIn(query: URLSearchParams): string {
  return (query.get("method") ?? "GET").toUpperCase();
}

/** Returns the request that a read describes, with the caller's host and headers; undefined if it is unreadable. */
function describedIn({ url, headers, cf }: Request, query: URLSearchParams): Request | undefined {
  const { origin, pathname } = new URL(url);
  const target = query.get("path") ?? pathname;
  if (!target.startsWith("/")) return undefined;
  try {
    const request = new Request(origin + target, { method: methodIn(query), headers });
    // The constructor accepts only some fields of `cf`.
    return Object.defineProperty(request, "cf", { value: cf, enumerable: true });
  } catch {
    return undefined;
  }
}

/** Whether a rule counts requests to every path together. */
function isForEveryPath({ match, key, tiers }: Rule): boolean {
  const parts = [...key, ...(tiers?.by ?? [])].flat();
  return !match.paths && !parts.some(({ kind }) => kind === "path" || kind === "param");
}

/**
 * Returns the matches of the rules whose quotas a response shows. A cost that a function, the body or the response
 * determines is unknown for a described request, so it counts as the lowest that needs quota.
 */
export function checkedMatches(
  matches: readonly RuleMatch[],
  counts: (rule: Rule) => boolean,
): RuleMatch[] {
  return matches
    .filter(({ rule }) => rule.mode !== "shadow" && counts(rule))
    .map((match) => ({ ...match, rule: { ...match.rule, cost: costBefore(match.rule.cost) } }));
}

function limitOf({ policy, limit, remaining, concurrent, sliding, ...quota }: Quota) {
  const state = { policy, limit, remaining, ...(sliding !== undefined && { sliding: true }) };
  if (concurrent) return { ...state, concurrent };
  const { windowMs, resetMs, violated, retryAfterMs } = quota;
  const times = { window: toSeconds(windowMs), reset: toSeconds(resetMs) };
  if (!violated || retryAfterMs === undefined) return { ...state, ...times };
  return { ...state, ...times, retryAfter: toSeconds(retryAfterMs) };
}

/** 429: the address has read quotas too often. */
function tooManyReads(asked: Request, seconds: number): Response {
  const detail = `The quotas were read too often. Try again in ${seconds} s.`;
  const response = plainProblem(asked, 429, "Too Many Requests", detail);
  response.headers.set("Retry-After", String(seconds));
  return response;
}
