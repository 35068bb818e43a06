import type { ClientState } from "../limiter/clients.ts";
import { costBefore, pickShards, type ShardPair, usedShards } from "../limiter/counters.ts";
import { Decider } from "../limiter/decider.ts";
import type { Decision, ShadowResult } from "../limiter/decision.ts";
import { createFallback } from "../limiter/fallback.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { StoreError } from "../stores/store.ts";
import type { ExplainContext } from "./explanation.ts";
import { ImaginedStore } from "./imagined-store.ts";

/** How the random choice of two shards changes the decision under a rule. */
interface ShardOutlook {
  /** A random pair with the likelier result. */
  readonly pair: ShardPair;
  /** Whether some pairs admit the request, and others do not. */
  readonly mayDiffer: boolean;
  /** The number of shards from which requests choose. */
  readonly shards: number;
}

/**
 * Compares all pairs of shards that the request may draw. If as many pairs admit it as not, it counts as admitted.
 *
 * @returns undefined if the rule has no shards
 */
export function shardOutlookOf(
  applied: AppliedRule,
  { counters }: ClientState,
): ShardOutlook | undefined {
  const { rule, cost = costBefore(rule.cost) } = applied;
  if (rule.shards === 1) return undefined;
  const shards = usedShards(applied);
  // Whether each shard alone has quota for the request, by window. The store uses the shard with more quota left.
  const hasQuota = applied.windows.map((window) =>
    counters
      .filter((each) => each.window === window)
      .map(({ capacity, tally }) => tally.count + cost <= capacity),
  );
  const pairs: Record<"admitting" | "denying", ShardPair[]> = { admitting: [], denying: [] };
  for (let one = 0; one < shards; one++) {
    for (let other = one + 1; other < shards; other++) {
      const isAdmitted = hasQuota.every((each) => each[one] || each[other]);
      pairs[isAdmitted ? "admitting" : "denying"].push([one, other]);
    }
  }
  const { admitting, denying } = pairs;
  const likelier = admitting.length >= denying.length ? admitting : denying;
  const [drawn, another] = pickShards(shards);
  const pair = likelier.find(([one, other]) => one === drawn && other === another) ?? likelier[0];
  const mayDiffer = admitting.length > 0 && denying.length > 0;
  return pair && { pair, mayDiffer, shards };
}

/** Returns the numbers with which `pickShards` picks the pairs of these outlooks, one after another. */
export function randomFor(outlooks: Iterable<ShardOutlook>): () => number {
  const numbers = [...outlooks].flatMap(({ pair: [one, other], shards }) => [
    (one + 0.5) / shards,
    (other - one - 0.5) / (shards - 1),
  ]);
  return () => numbers.shift() ?? Math.random();
}

/** What is known about the clients of a request, and the decision that the request would get. */
export interface ImaginedDecision {
  readonly decision: Decision;
  /** The policies whose limits the request exceeds, of rules in every mode. */
  readonly exceeded: ReadonlySet<string>;
  /** The states of the clients, by the applied rules; empty if the store failed. */
  readonly states: ReadonlyMap<AppliedRule, ClientState>;
  /** The rules with shards whose decision depends on the shards that a request draws. */
  readonly mayDiffer: ReadonlySet<AppliedRule>;
  /** Undefined if the store failed. */
  readonly store?: ImaginedStore;
  readonly storeFailure?: string;
}

/**
 * Reads the clients' states, and decides the request by them.
 *
 * @throws {StoreError} if the store fails and `context.decide` is undefined
 */
export async function imagineDecision(
  appliedRules: readonly AppliedRule[],
  context: ExplainContext,
  now: number,
): Promise<ImaginedDecision> {
  let states: readonly ClientState[];
  try {
    states = await context.read(appliedRules);
  } catch (error) {
    if (!(error instanceof StoreError) || !context.decide) throw error;
    const decision = await context.decide(appliedRules);
    const storeFailure = `${error.failure}, ${error.message}`;
    const unread = { states: new Map(), mayDiffer: new Set<AppliedRule>(), storeFailure };
    return { decision, exceeded: await exceededBy(decision), ...unread };
  }
  const { prefix } = context.bindings;
  const { timeoutMs } = context.config;
  const store = new ImaginedStore(
    states.flatMap(({ counters }) => counters),
    now,
  );
  // The imagined store never fails, so the fallback decides nothing.
  const fallback = createFallback({ prefix, timeoutMs });
  const config = { prefix, timeoutMs, clock: "edge" } as const;
  const outlooks = new Map(
    appliedRules.flatMap((each, index) => {
      const outlook = shardOutlookOf(each, states[index] as ClientState);
      return outlook ? [[each, outlook] as const] : [];
    }),
  );
  const decider = new Decider(config, store, fallback, () => store.now);
  const decision = await decider.decide(appliedRules, { random: randomFor(outlooks.values()) });
  return {
    decision,
    exceeded: await exceededBy(decision),
    states: new Map(appliedRules.map((each, index) => [each, states[index] as ClientState])),
    mayDiffer: new Set([...outlooks].flatMap(([each, { mayDiffer }]) => (mayDiffer ? each : []))),
    store,
  };
}

async function exceededBy(decision: Decision): Promise<Set<string>> {
  if (decision.outcome === "undecided") return new Set();
  const shadow: ShadowResult[] = (await Promise.all(decision.shadow)).flat();
  return new Set(
    [...decision.quotas, ...shadow].flatMap((each) =>
      "violated" in each && each.violated ? [each.policy] : [],
    ),
  );
}
