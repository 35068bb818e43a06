import type { LogClientFacts } from "../logs/log-request.ts";
import { ownText } from "../logs/text-cache.ts";
import type { ClientHash } from "../tally/client-hash.ts";
import { compare } from "../tally/frequent-texts.ts";
import type { SuggestedBot } from "./suggestion.ts";
import type { WindowCounter } from "./window-counter.ts";

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
