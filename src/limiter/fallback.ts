import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { Subject } from "../request/subject.ts";
import { memoryStore } from "../stores/memory.ts";
import { StoreError } from "../stores/store-error.ts";
import { type Ask, type Entry, entriesOf } from "./counters.ts";
import type { Allowed, Limited, Undecided } from "./decision.ts";
import { quotasOf } from "./quotas.ts";

/** Cloudflare's native limiter: one for each of its locations, and only roughly right. */
export type Floor = Pick<RateLimit, "limit">;

/** The longest period that Cloudflare's limiter has, in milliseconds: when to ask again at last. */
const FLOOR_PERIOD_MS = 60_000;

/** What stands in for the store where rules say `onError: "local"`. */
export interface Fallback {
  /** Whether these rules are to be decided here when the store could not decide them. */
  covers(rules: readonly Rule[]): boolean;

  /** Decides by what this isolate has seen since the store failed. Never rejects. */
  decide(
    subjects: readonly Subject[],
    failure: Undecided,
    ask?: Ask,
  ): Promise<Allowed | Limited | Undecided>;

  /** Charges what a response turned out to cost. */
  charge(entries: readonly Entry[]): Promise<void>;
}

/**
 * A limiter in this isolate alone, for the time that the store is away.
 *
 * Cloudflare runs many isolates and each counts for itself, so that together they may admit as many
 * times a rule's share as there are isolates that see the client. `localShare` is what part of a limit
 * one of them admits. The floor, where there is one, is asked too: it counts for a whole location.
 */
export function createFallback({ prefix }: Pick<Config, "prefix">, floor?: Floor): Fallback {
  const store = memoryStore();

  async function hasFloor({ rule, identity }: Subject): Promise<boolean> {
    if (!floor) return true;
    try {
      return (await floor.limit({ key: `${rule.name}:${identity}` })).success;
    } catch {
      // The isolate's own count stands for itself.
      return true;
    }
  }

  return {
    covers(rules) {
      const enforced = rules.filter(({ mode }) => mode === "enforce");
      const isClosed = enforced.some(({ onError }) => onError === "closed");
      return !isClosed && enforced.some(({ onError }) => onError === "local");
    },

    async decide(subjects, failure, ask) {
      const local = subjects.filter(isLocal);
      const entries = local.flatMap((subject) => localEntriesOf(subject, prefix, ask));
      try {
        const now = Date.now();
        const verdict = await store.decide([entries.map(({ counter }) => counter)], now);
        const [answer] = verdict.groups;
        if (!answer) throw new StoreError("nonsense", "no verdict");
        const quotas = quotasOf(entries, answer, now);
        const denier = entries.find((_, index) => quotas[index]?.violated);
        if (denier) {
          const retryAfterMs = Math.max(...quotas.map((quota) => quota.retryAfterMs));
          return limited(denier.rule, quotas, retryAfterMs, failure);
        }
        const isWithin = await Promise.all(local.map(hasFloor));
        const index = isWithin.indexOf(false);
        const below = local[index];
        if (below) {
          const violated = quotas.map((quota, at) =>
            entries[at]?.rule === below.rule ? { ...quota, violated: true, remaining: 0 } : quota,
          );
          return limited(below.rule, violated, FLOOR_PERIOD_MS, failure);
        }
        return { outcome: "allowed", quotas: [], shadow: [], honouredAfterMs: 0, local: failure };
      } catch (error) {
        // Full, at worst: then it is decided as strictly as can be.
        const cause = error instanceof StoreError ? error.failure : "internal";
        return { ...failure, cause, detail: "this isolate cannot count either", open: false };
      }
    },

    async charge(entries) {
      const local = entries.filter(({ rule }) => rule.onError === "local");
      const counters = local.map((entry) => localEntry(entry).counter);
      if (counters.length > 0) await store.adjust(counters, Date.now());
    },
  };
}

function limited(
  rule: Rule,
  quotas: Limited["quotas"],
  retryAfterMs: number,
  local: Undecided,
): Limited {
  return { outcome: "limited", quotas, shadow: [], retryAfterMs, rule, local };
}

function isLocal({ rule }: Subject): boolean {
  return rule.mode === "enforce" && rule.onError === "local";
}

function localEntriesOf(subject: Subject, prefix: string, ask?: Ask): Entry[] {
  return entriesOf({ ...subject, rule: { ...subject.rule, shards: 1 } }, prefix, ask).map(
    localEntry,
  );
}

/** The same counter with a share of its limit: nothing rolls over, and nothing is reserved. */
function localEntry({ counter, window, rule }: Entry): Entry {
  const { key, identity, windowMs, offsetMs, cost, checkOnly, banMs, neverBans } = counter;
  // Of the smallest limits there is still one, and room for whatever had room in the whole.
  const share = Math.max(Math.ceil(window.limit * rule.localShare), Math.min(cost, window.limit));
  return {
    rule,
    window,
    capacity: share,
    counter: {
      key,
      identity,
      windowMs,
      offsetMs,
      cost,
      limit: share,
      ceiling: share,
      ...(checkOnly && { checkOnly }),
      ...(banMs !== undefined && { banMs }),
      ...(neverBans && { neverBans }),
    },
  };
}
