import type { KeyPart } from "../../src/config/key.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { clientAddress } from "../../src/request/headers.ts";
import { encodeValues } from "../../src/request/identity.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import type { PathMatch } from "../../src/request/route-table.ts";
import { sentNamesOf } from "../../src/request/sent-values.ts";
import {
  type LogClientFacts,
  type LogFacts,
  type LogRequest,
  ownText,
} from "../logs/log-request.ts";
import { showsPreflights } from "../logs/needs.ts";
import { clientText, type KeyValue, keyValuesOf, UNKNOWN_ADDRESS } from "../replay/clients.ts";
import { LoggedRequest } from "../replay/logged-request.ts";
import { RouteCache } from "../replay/route.ts";
import { ClientHash } from "../tally/client-ranking.ts";
import { compare } from "../tally/texts.ts";
import { isPlainIPv4, type WindowCounter } from "./counts.ts";
import type { SuggestedBot } from "./suggestion.ts";

/** The number of cached addresses. They take up to 20 MB. */
const CACHED_ADDRESSES = 65_536;
/** The longest address that is cached, in characters. */
const MAX_CACHED = 45;
const ADDRESS: KeyPart = { kind: "ip" };

/** The client of a request. Valid only until the next request is read. */
export interface RequestClient {
  /** A text that is different for every client. */
  readonly identity: string;
  /** The hash of `identity`. */
  readonly hash: ClientHash;
  /** Returns the client as reports show it. */
  readonly shown: () => string;
}

/** Finds the requests that a rule matches, and their clients, with the code of the Worker. */
export class ClientReader {
  /** Requests that are left out because their address is needed and unknown. */
  withoutAddress = 0;
  /** Requests that the Worker answers with 400 or 414 before it reads the rules. */
  refused = 0;
  readonly #rule: Rule;
  readonly #countsUnknownAddress: boolean;
  readonly #ipv6Prefix: number;
  readonly #request: LoggedRequest;
  readonly #routes: RouteCache;
  /** Whether the address alone identifies clients, which is the most frequent key. */
  readonly #isByAddress: boolean;
  /** The canonical addresses of addresses as logged. */
  readonly #addresses = new LruCache<string>(CACHED_ADDRESSES);
  /** The client of the current request. One object serves all requests, because a log has millions. */
  readonly #client = { identity: "", hash: new ClientHash(), shown: () => this.#shown() };
  #values: readonly KeyValue[] = [];

  /** @param countsUnknownAddress whether clients without an address are one client, as in the Worker */
  constructor(
    rule: Rule,
    { caseSensitivePaths, ipv6Prefix }: Pick<Config, "caseSensitivePaths" | "ipv6Prefix">,
    facts: LogFacts,
    countsUnknownAddress: boolean,
  ) {
    const hasPreflights = showsPreflights(facts);
    this.#rule = rule;
    this.#countsUnknownAddress = countsUnknownAddress;
    this.#ipv6Prefix = ipv6Prefix;
    this.#request = new LoggedRequest(hasPreflights, sentNamesOf([rule]));
    this.#routes = new RouteCache([rule], caseSensitivePaths, hasPreflights, this.#request);
    this.#isByAddress = rule.key.length === 1 && rule.key[0]?.[0]?.kind === "ip";
  }

  /** OPTIONS requests that are left out because the log does not show whether they are preflights. */
  get assumedPreflights(): number {
    return this.#routes.assumedPreflights;
  }

  /** Returns the client of a request; undefined if the rule does not count the request. */
  clientOf(request: LogRequest): RequestClient | undefined {
    const matches = this.#routes.matchesOf(request);
    if (!matches) this.refused++;
    const match = matches?.[0];
    if (!match) return undefined;
    const identity = this.#isByAddress ? this.#addressOf(request) : this.#valuesOf(match);
    if (identity === undefined) {
      this.withoutAddress++;
      return undefined;
    }
    this.#client.identity = identity;
    this.#client.hash.set(identity);
    return this.#client;
  }

  /** @returns undefined if the address is unknown, and such clients do not count */
  #addressOf({ ip = "" }: LogRequest): string | undefined {
    // This is the canonical form already. Most addresses have it, and parsing them takes long.
    if (isPlainIPv4(ip)) return ip;
    const cached = this.#addresses.get(ip);
    if (cached !== undefined) return cached;
    const address = clientAddress(this.#request.headers, this.#ipv6Prefix);
    if (address === UNKNOWN_ADDRESS) return this.#countsUnknownAddress ? address : undefined;
    // A Worker has another header field too, which tells its zone.
    const isCached = ip.length <= MAX_CACHED && !address.startsWith("worker:");
    if (isCached) this.#addresses.set(ownText(ip), address);
    return address;
  }

  /** @returns undefined if the client's address is needed and unknown */
  #valuesOf({ path, params }: PathMatch): string | undefined {
    const context = { request: this.#request, path, params, ipv6Prefix: this.#ipv6Prefix };
    const values = keyValuesOf(this.#rule.key, context);
    if (!this.#countsUnknownAddress && values.some(isUnknownAddress)) return undefined;
    this.#values = values;
    return encodeValues(values);
  }

  /** Returns the values of the key as reports show them. */
  #shown(): string {
    if (this.#isByAddress) return clientText(ADDRESS, this.#client.identity);
    return this.#values.map(({ part, value }) => clientText(part, value)).join(", ");
  }
}

function isUnknownAddress({ part, value }: KeyValue): boolean {
  return part.kind === "ip" && value === UNKNOWN_ADDRESS;
}

/** Parts of the user agents of well-known crawlers, in lower case, and the names that reports show. */
const CRAWLERS: readonly (readonly [part: string, name: string])[] = [
  ["googlebot", "Googlebot"],
  ["google-inspectiontool", "Google-InspectionTool"],
  ["adsbot-google", "AdsBot-Google"],
  ["bingbot", "bingbot"],
  ["msnbot", "msnbot"],
  ["yandexbot", "YandexBot"],
  ["baiduspider", "Baiduspider"],
  ["duckduckbot", "DuckDuckBot"],
  ["applebot", "Applebot"],
  ["yahoo! slurp", "Yahoo! Slurp"],
  ["petalbot", "PetalBot"],
  ["seznambot", "SeznamBot"],
  ["gptbot", "GPTBot"],
  ["oai-searchbot", "OAI-SearchBot"],
  ["chatgpt-user", "ChatGPT-User"],
  ["claudebot", "ClaudeBot"],
  ["perplexitybot", "PerplexityBot"],
  ["amazonbot", "Amazonbot"],
  ["bytespider", "Bytespider"],
  ["meta-externalagent", "meta-externalagent"],
  ["facebookexternalhit", "facebookexternalhit"],
  ["twitterbot", "Twitterbot"],
  ["linkedinbot", "LinkedInBot"],
  ["pinterestbot", "Pinterestbot"],
  ["slackbot", "Slackbot"],
  ["ccbot", "CCBot"],
  ["ahrefsbot", "AhrefsBot"],
  ["semrushbot", "SemrushBot"],
  ["mj12bot", "MJ12bot"],
  ["dotbot", "DotBot"],
  ["uptimerobot", "UptimeRobot"],
  ["pingdom", "Pingdom"],
];

/**
 * Returns the well-known crawler that a user agent names; undefined if it names none. Everyone can send such a
 * user agent, so it is only a claim.
 */
export function claimedCrawler(userAgent: string): string | undefined {
  const lower = userAgent.toLowerCase();
  return CRAWLERS.find(([part]) => lower.includes(part))?.[1];
}

/** Cloudflare has fewer than 20 categories. The rest of a log with more of them is counted as one. */
const MAX_CATEGORIES = 50;
const MAX_LENGTH = 64;

/** The category of verified bots whose category the log does not state. */
const UNNAMED = "(no category)";
const OTHERS = "(other categories)";

/** Returns the category of a verified bot; undefined for all other clients. */
export function botCategoryOf(cf: LogClientFacts | undefined): string | undefined {
  if (cf?.verifiedBotCategory) return cf.verifiedBotCategory;
  return cf?.botManagement?.verifiedBot ? UNNAMED : undefined;
}

interface Category {
  requests: number;
  busiest: number;
}

/** Counts the requests of verified bots by category. */
export class VerifiedBots {
  readonly #categories = new Map<string, Category>();
  /** Counts the requests of each bot in the shortest windows. */
  readonly #counter: WindowCounter;

  constructor(counter: WindowCounter) {
    this.#counter = counter;
  }

  add(category: string, { high, low }: ClientHash, at: number): void {
    const counted = this.#categoryOf(category);
    counted.requests++;
    const count = this.#counter.add(high, low, at);
    if (count > counted.busiest) counted.busiest = count;
  }

  /** Returns the categories, the one with the most requests first. */
  list(): SuggestedBot[] {
    return [...this.#categories]
      .map(([category, counts]) => ({ category, ...counts }))
      .sort((one, other) => other.requests - one.requests || compare(one.category, other.category));
  }

  #categoryOf(name: string): Category {
    const bounded = name.length > MAX_LENGTH ? name.slice(0, MAX_LENGTH) : name;
    const known = this.#categories.get(bounded);
    if (known) return known;
    const isFull = this.#categories.size >= MAX_CATEGORIES;
    const key = isFull ? OTHERS : ownText(bounded);
    const category = this.#categories.get(key) ?? { requests: 0, busiest: 0 };
    this.#categories.set(key, category);
    return category;
  }
}
