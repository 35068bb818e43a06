import type { ClientState } from "../limiter/clients.ts";
import type { Decision, ShadowResult } from "../limiter/decision.ts";
import { createFallback } from "../limiter/fallback.ts";
import { Decider } from "../limiter/limiter.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { StoreError } from "../stores/store.ts";
import type { ExplainContext } from "./explain-context.ts";
import { ImaginedStore } from "./imagined-store.ts";
import { randomFor, shardOutlookOf } from "./shard-outlook.ts";

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
