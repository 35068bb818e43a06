import { rulesInMode } from "../config/bindings.ts";
import type { CustomContext } from "../config/custom.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { banKey, countsStrikes } from "../engine/bans.ts";
import {
  type Adjustment,
  type Demand,
  MAX_COUNT,
  type Row,
  type Slot,
  storedKey,
  type UnusedQuota,
  windowEndingNear,
  windowStart,
} from "../engine/counter.ts";
import { decideGroup } from "../engine/fixed-window.ts";
import { countsSlots } from "../engine/slots.ts";
import { countsSubWindows, freeAt } from "../engine/sub-windows.ts";
import { denialResponse } from "../http/custom-denial.ts";
import { withOriginHeaders } from "../http/forward.ts";
import { withQuotaHeaders, withServerTiming } from "../http/response-headers.ts";
import { undecidedResponse } from "../http/responses.ts";
import type { ClientState, CounterTally } from "../limiter/clients.ts";
import { costBefore, waits } from "../limiter/counters.ts";
import { type Decision, isViolated, type Quota, settledVerdictsOf } from "../limiter/decision.ts";
import { Limiter } from "../limiter/limiter.ts";
import { LiveOverrides } from "../overrides/live-overrides.ts";
import { type Override, overrideId } from "../overrides/override.ts";
import { type CanonicalRequest, placeOf, readsOwnQuotas } from "../request/canonical-request.ts";
import { clientAddress } from "../request/headers.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { type Answer, type Group, type Store, StoreError } from "../stores/store.ts";
import { type ExplainedClient, explainClients, identifyDescribed } from "./client.ts";
import { pathTooLong, readRequest } from "./described-request.ts";
import type {
  DescribedRequest,
  ExplainContext,
  ExplainedBan,
  ExplainedCounter,
  ExplainedRequest,
  ExplainedResponse,
  ExplainedRule,
  ExplainOverrides,
  Explanation,
} from "./explanation.ts";
import { explainMatches, type MatchedRule } from "./matching.ts";

/** The decision that a request would get, and its effects under each rule. */
interface DryRun {
  readonly decision: Decision;
  /** Undefined if the store could be read. */
  readonly storeFailure?: string;
  /** Returns the fields of a rule's explanation that depend on the store. */
  readonly fieldsOf: (applied: AppliedRule) => Partial<ExplainedRule>;
}

/**
 * Reads the clients' states, and decides the request by these states. Charges nothing, and begins no ban.
 *
 * @throws {StoreError} if the store fails and `context.decide` is undefined
 */
async function dryRun(
  appliedRules: readonly AppliedRule[],
  context: ExplainContext,
  now: number,
): Promise<DryRun> {
  let states: readonly ClientState[];
  try {
    states = await context.read(appliedRules);
  } catch (error) {
    if (!(error instanceof StoreError) || !context.decide) throw error;
    const decision = await context.decide(appliedRules);
    const excessOf = await excessesOf(decision);
    return {
      decision,
      storeFailure: `${error.failure}, ${error.message}`,
      fieldsOf: (applied) => ({ ...excessOf(applied), quotas: [] }),
    };
  }
  const { prefix } = context.bindings;
  const { timeoutMs } = context.config;
  const counters = states.flatMap((state) => state.counters);
  const store = new ReadOnlyStore(counters, now);
  const config = { prefix, timeoutMs, clock: "edge" } as const;
  const tasks: Promise<unknown>[] = [];
  const limiter = new Limiter(config, store, {
    time: () => store.now,
    background: (task) => void tasks.push(task),
  });
  // Without a signal, the request does not wait.
  const decision = await limiter.decide(appliedRules);
  const excessOf = await excessesOf(decision);
  // A denied request gives back the slots that it has taken under rules in shadow mode.
  await Promise.allSettled(tasks);
  const byRule = new Map(appliedRules.map((each, index) => [each, states[index]]));
  return {
    decision,
    fieldsOf(applied) {
      const state = byRule.get(applied);
      if (!state) return {};
      const newBan = newBanOf(applied, state.counters, store);
      return {
        ...excessOf(applied),
        quotas: state.quotas,
        counters: countersOf(applied, state.counters, store),
        banMs: state.banMs,
        ...(newBan && { newBan }),
      };
    },
  };
}

/** Returns a function that says whether the request exceeds a limit of a rule in any mode, and whether it always will. */
async function excessesOf(
  decision: Decision,
): Promise<(applied: AppliedRule) => Pick<ExplainedRule, "exceeds" | "maxCost">> {
  const verdicts =
    decision.outcome === "undecided" ? [] : await settledVerdictsOf(decision.verdicts);
  const violated = verdicts.flatMap((each) => each.quotas).filter(isViolated);
  const misfits = verdicts.flatMap((each) => each.misfits ?? []);
  const exceeded = new Set([...violated, ...misfits.map(({ window }) => window)].map(policyOf));
  return ({ windows }) => {
    const policies = windows.map(policyOf);
    const own = misfits.filter(({ window }) => policies.includes(window.policy));
    return {
      exceeds: policies.some((policy) => exceeded.has(policy)),
      ...(own.length > 0 && { maxCost: Math.min(...own.map(({ maxCost }) => maxCost)) }),
    };
  };
}

function policyOf({ policy }: { readonly policy: string }): string {
  return policy;
}

/** Returns the counters of a client under a rule, with the values that the request would store. */
function countersOf(
  { rule, cost = costBefore(rule.cost) }: AppliedRule,
  states: readonly CounterTally[],
  store: ReadOnlyStore,
): ExplainedCounter[] {
  const decided = new Set(store.decided.map(({ key }) => key));
  const isDecided = states.some(({ counter }) => decided.has(counter.key));
  // If the request would use no shard, the first shard is shown.
  const isShown = ({ counter }: CounterTally) =>
    isDecided ? decided.has(counter.key) : !counter.shard?.number;
  return states.filter(isShown).map((state): ExplainedCounter => {
    const { counter, window, tally } = state;
    const shard = counter.shard?.number;
    const { startsAt, endsAt } = window.concurrent
      ? { startsAt: store.now, endsAt: store.now + tally.resetMs }
      : windowEndingNear(store.now + tally.resetMs, counter);
    const key = storedKey(counter, store.now);
    const write = store.writes.get(key);
    return {
      policy: window.policy,
      ...(shard !== undefined && { shard }),
      limit: counter.limit,
      capacity: state.capacity,
      count: tally.count,
      cost: window.concurrent ? 1 : cost,
      ...(window.concurrent && { concurrent: true }),
      windowStart: tally.ring
        ? windowStart(counter, tally.ring.window - (counter.subWindows ?? 0))
        : startsAt,
      windowEnd: endsAt,
      storedKey: key,
      ...(write && { countAfter: write.count, expiresAt: write.expiresAt }),
    };
  });
}

/** Returns the longest ban that the request would begin under a rule; undefined if it would begin none. */
function newBanOf(
  { rule }: AppliedRule,
  states: readonly CounterTally[],
  { writes }: ReadOnlyStore,
): ExplainedBan | undefined {
  const bans = states.flatMap(({ counter }): ExplainedBan[] => {
    const storedKey = banKey(counter);
    const row = writes.get(storedKey);
    return row ? [{ storedKey, until: row.expiresAt, isAtLeast: countsStrikes(rule) }] : [];
  });
  return bans.sort((one, other) => other.until - one.until)[0];
}

/**
 * A store that decides with the counts of another store, and only notes the values that it would store. So an
 * explanation has the decision, the counts and the bans of a real request, but takes no quota.
 */
class ReadOnlyStore implements Store {
  /** The time of the other store, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** The rows that the decision would store, by their keys. */
  readonly writes = new Map<string, Row>();
  /** The counters that were decided. */
  readonly decided: Demand[] = [];
  readonly #rows = new Map<string, Row>();

  /**
   * @param states the states of all counters that may be decided
   * @param now this isolate's time
   */
  constructor(states: readonly CounterTally[], now: number) {
    this.now = storeTimeOf(states, now);
    for (const { counter, tally } of states) {
      const { count, ring, banMs } = tally;
      const window = windowEndingNear(this.now + tally.resetMs, counter).index;
      const key = storedKey(counter, this.now);
      if (countsSlots(counter)) {
        // Their ids are unknown. Each of them expires before a new slot would.
        const expiresAt = this.now + counter.windowMs;
        const slots = Array.from({ length: count }, (_, index): Slot => [-1 - index, expiresAt]);
        this.#rows.set(key, { window: 0, count, expiresAt, slots });
      } else if (count > 0) {
        this.#rows.set(key, { ...(ring ?? { window }), count, expiresAt: MAX_COUNT });
      }
      if (banMs > 0) {
        this.#rows.set(banKey(counter), { window: 0, count: 1, expiresAt: this.now + banMs });
      }
    }
  }

  decide(groups: readonly Group[], now = this.now): Promise<Answer>[] {
    return groups.map(async (group) => {
      this.decided.push(...group);
      const { verdict, writes } = decideGroup(group, now, (key) => this.#rows.get(key));
      for (const [key, row] of writes) if (row) this.writes.set(key, row);
      return { ...verdict, now };
    });
  }

  /** A decision only gives back what it has taken itself, so the row is then the one of the other store. */
  async adjust(
    _counters: readonly Adjustment[],
    _now?: number,
    unused: readonly UnusedQuota[] = [],
  ) {
    for (const { counter } of unused) this.writes.delete(storedKey(counter, this.now));
    return [];
  }

  async reset(): Promise<void> {}
}

/**
 * Returns the time of the store that has answered, by the end of the longest window and the time until then. The
 * store's clock and this isolate's clock differ by less than half of this window.
 */
function storeTimeOf(states: readonly CounterTally[], now: number): number {
  let longest: CounterTally | undefined;
  for (const each of states) {
    if (each.window.concurrent) continue;
    if (!longest || each.counter.windowMs > longest.counter.windowMs) longest = each;
  }
  if (!longest) return now;
  const { counter, tally } = longest;
  const { ring, resetMs } = tally;
  if (ring && countsSubWindows(counter)) return freeAt(counter, ring, 1) - resetMs;
  return windowEndingNear(now + resetMs, counter).endsAt - resetMs;
}

/**
 * Explains which rules apply to a described request, the decision that it would get now, and the values that it would
 * store. Takes no quota and begins no ban. The functions in `custom` are called as for a real request.
 *
 * @throws {DescriptionError} if the description is no request that rules can match
 * @throws {StoreError} if the store fails and `context.decide` is undefined
 */
export async function explain(
  described: DescribedRequest,
  context: ExplainContext,
  overrides: ExplainOverrides = { live: new LiveOverrides(context.bindings.mode), byId: new Map() },
): Promise<Explanation> {
  const { config, bindings, custom } = context;
  const { live, byId } = overrides;
  const now = (context.now ?? Date.now)();
  const request = readRequest(described);
  const known = await identifyDescribed(request, rulesFor(request, context), context, live);
  if (!known) throw pathTooLong();
  const { identified, found } = known;
  const { canonical } = identified;
  const matched = explainMatches(config, identified, found.conditions, bindings.mode, live);
  const clients = await explainClients(request, identified, found, context);
  const applied = matched.flatMap(({ rule }) => clients.get(rule.name)?.applied ?? []);
  const run = applied.length > 0 ? await dryRun(applied, context, now) : undefined;
  const { decision, storeFailure } = run ?? {};
  const waitMs = waitOf(decision);
  return {
    outcome: decision?.outcome ?? "unmatched",
    request: explainedRequest(canonical, config.ipv6Prefix),
    rules: matched.map((each) => explainedRule(each, clients.get(each.rule.name), run, byId)),
    response: readsOwnQuotas(canonical, config)
      ? { status: 200, headers: [] }
      : await explainedResponse(request, applied, decision, config, custom),
    ...(storeFailure !== undefined && { storeFailure }),
    ...(waitMs > 0 && { waitMs }),
  };
}

/** Returns the rules that the gateway tests for a request: none if the request reads the client's own quotas. */
function rulesFor({ method, url }: Request, { config, bindings }: ExplainContext): readonly Rule[] {
  const path = placeOf(url, config.caseSensitivePaths)?.path;
  if (path !== undefined && readsOwnQuotas({ sentMethod: method, path }, config)) return [];
  return rulesInMode(config.rules, bindings.mode).filter((rule) => rule.for !== "programs");
}

/** Returns how long a denied request would wait for its turn at most; 0 if it would be denied at once. */
function waitOf(decision: Decision | undefined): number {
  // While an isolate decides alone, no request waits.
  if (decision?.outcome !== "limited" || decision.storeFailure) return 0;
  const waitsMs = decision.verdicts
    .filter(({ appliedRule }) => appliedRule.rule.mode === "enforce")
    .flatMap(({ appliedRule: { rule, blockedUntil }, quotas }) => {
      const mayPass = ({ concurrent, retryAfterMs }: Quota) =>
        concurrent || (retryAfterMs !== undefined && retryAfterMs <= rule.waitMs);
      return quotas
        .filter(isViolated)
        .map((quota) => (blockedUntil === undefined && mayPass(quota) ? rule.waitMs : 0));
    });
  return waitsMs.length > 0 ? Math.min(...waitsMs) : 0;
}

function explainedRequest(canonical: CanonicalRequest, ipv6Prefix: number): ExplainedRequest {
  const { method, sentMethod, isPreflight, host, path, variants, isUnambiguous, headers } =
    canonical;
  const client = clientAddress(headers, ipv6Prefix);
  return { method, sentMethod, isPreflight, host, path, variants, isUnambiguous, client };
}

/**
 * Creates the explanation of a rule.
 *
 * @param client undefined if the rule does not match
 * @param run undefined if no rule applies
 * @param overrides the overrides by their ids
 */
function explainedRule(
  { rule, active, conditions, why }: MatchedRule,
  client: ExplainedClient | undefined,
  run: DryRun | undefined,
  overrides: ReadonlyMap<string, Override>,
): ExplainedRule {
  const identity = client?.identity;
  const override =
    (identity === undefined
      ? undefined
      : overrides.get(overrideId({ rule: rule.name, client: identity }))) ??
    overrides.get(overrideId({ rule: rule.name }));
  const base: Omit<ExplainedRule, "applies" | "why"> = {
    rule: rule.name,
    mode: active?.mode ?? "off",
    conditions: [...conditions, ...(client?.conditions ?? [])],
    key: client?.key ?? [],
    ...(identity !== undefined && { client: identity }),
    ...(override && { override }),
  };
  const applied = client?.applied;
  if (!applied || !run) return { ...base, applies: false, why: why || whyNotApplied(client) };
  return {
    ...base,
    applies: true,
    why: whyApplied(applied),
    ...(client.tier !== undefined && { tier: client.tier }),
    ...(client.limitSource !== undefined && { limitSource: client.limitSource }),
    cost: applied.cost ?? costBefore(applied.rule.cost),
    costSource: client.costSource,
    ...(waits(applied.rule) && { waitMs: applied.rule.waitMs }),
    ...(mayPassAhead(applied) && { async: true }),
    ...run.fieldsOf(applied),
  };
}

/** Whether the rule lets a request pass ahead. Without a call, an isolate denies a blocked client, and a limit of 0. */
function mayPassAhead({ rule, windows, blockedUntil }: AppliedRule): boolean {
  if (!rule.async || rule.mode !== "enforce" || blockedUntil !== undefined) return false;
  return windows.every(({ limit }) => limit > 0);
}

function whyNotApplied(client: ExplainedClient | undefined): string {
  if (client?.identity !== undefined) return "An override exempts the client.";
  const field = client?.conditions.at(-1)?.field ?? "exempt";
  return `The request fulfils exempt: ${field.slice("exempt.".length)}.`;
}

function whyApplied({ rule: { mode }, blockedUntil }: AppliedRule): string {
  const matches = mode === "enforce" ? "It matches." : `It matches, with mode: "${mode}".`;
  return blockedUntil === undefined ? matches : `${matches} An override blocks the client.`;
}

/** The maximum length of a body in an explanation, in characters. */
const MAX_BODY = 2000;

/**
 * Returns the response that a client would get, and the headers that the origin would get. The functions that create
 * real responses create this response.
 *
 * @param decision undefined if no rule applies
 */
async function explainedResponse(
  request: Request,
  appliedRules: readonly AppliedRule[],
  decision: Decision | undefined,
  config: Config,
  custom: CustomContext,
): Promise<ExplainedResponse> {
  const own = decision && (await ownResponse(request, decision, config, custom));
  const quotas = decision?.outcome === "allowed" ? decision.quotas : [];
  const quoted = withQuotaHeaders(request, new Response(), quotas, config.headers);
  const forwarded = withServerTiming(quoted, waitOf(decision) || undefined);
  const response = own ?? forwarded;
  const headers = [...response.headers];
  if (!own) return { headers, ...originHeaders(request, appliedRules, quotas, config) };
  const body = (await response.text()).slice(0, MAX_BODY);
  return { status: response.status, headers, ...(body !== "" && { body }) };
}

/** Returns Weir's own response; undefined if the request is forwarded. */
async function ownResponse(
  request: Request,
  decision: Decision,
  config: Config,
  custom: CustomContext,
): Promise<Response | undefined> {
  switch (decision.outcome) {
    case "allowed":
      return undefined;
    case "limited":
      return denialResponse(request, decision, custom, config, () => {});
    case "undecided":
      return decision.open ? undefined : undecidedResponse(request);
    default:
      return decision satisfies never;
  }
}

function originHeaders(
  request: Request,
  appliedRules: readonly AppliedRule[],
  quotas: readonly Quota[],
  { tellsOrigin }: Config,
): Pick<ExplainedResponse, "originHeaders"> {
  if (!tellsOrigin) return {};
  const { headers } = withOriginHeaders(request, appliedRules, quotas);
  return { originHeaders: [...headers].filter(([name]) => name.startsWith("weir-")) };
}
