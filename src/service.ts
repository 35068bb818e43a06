import { WorkerEntrypoint } from "cloudflare:workers";
import { type Env, resolveBindings } from "./config/bindings.ts";
import { MAX_LIMIT } from "./config/quota.ts";
import type { Rule, Window } from "./config/rule.ts";
import type { Config, RuleNameOf } from "./config/schema.ts";
import { rollsOver } from "./limiter/counters.ts";
import type { Decision, Quota, Undecided } from "./limiter/decision.ts";
import { createLimiter, type Limiter, undecided } from "./limiter/limiter.ts";
import { COUNTED_LOCALLY, logBreaker, logMisconfigured, logShadow, logUndecided } from "./log.ts";
import { RateLimitError } from "./rate-limit-error.ts";
import type { AppliedRule } from "./request/applied-rule.ts";
import { identityOfLimitKey, type LimitKey } from "./request/limit-key.ts";
import { CHARGED_OPTIONS, CLIENT_OPTIONS, checkOptions } from "./service-options.ts";
import { createStore } from "./stores/create-store.ts";

/** Which client a call is about. */
export interface ClientOptions {
  /**
   * The client: a value for the rule's key, or a list with one for each of its elements; see
   * {@link LimitKey}. Left out: one counter for all calls without a key.
   */
  key?: LimitKey;
  /** The client's tier; where the rule has none of that name, its own limits hold. */
  tier?: string;
}

export interface CheckOptions extends ClientOptions {
  /** Quota to ask for: a whole number from 0. Default: the rule's cost if it is a number, else 1. */
  cost?: number;
  /** Whether quota of windows to come will do, as far as the rule's `maxReserved`. Default: false. */
  reserve?: boolean;
  /** Whether to throw instead of answering `ok: false`. Default: false. */
  throws?: boolean;
}

export interface LimitOptions extends CheckOptions {
  /**
   * Quota to take, as for `check`. A negative cost gives quota back, but never more than was used;
   * then the answer is always `ok`.
   */
  cost?: number;
}

/** There was room. */
export interface LimitGranted {
  ok: true;
  /** Milliseconds until what was reserved is honoured: wait so long. Not there when nothing was. */
  retryAfterMs?: number;
  /** One for each window of the rule; none for a rule in shadow mode. */
  quotas: Quota[];
  undecided?: undefined;
}

/** There was no room; nothing was taken. */
export interface LimitDenied {
  ok: false;
  /** Milliseconds until there is room for the same cost. */
  retryAfterMs: number;
  quotas: Quota[];
  undecided?: undefined;
}

/** The store could not decide, so the rule's `onError` did. There are no figures to tell. */
export interface LimitUndecided {
  /** True for a rule that is `open`, false for one that is `closed`; of one that is `local`, either. */
  ok: boolean;
  /** Why; see `{"weir":"undecided"}` in the log for more. */
  undecided: Undecided["cause"];
  retryAfterMs?: undefined;
  quotas?: undefined;
}

export type LimitResult = LimitGranted | LimitDenied | LimitUndecided;

/**
 * Limits for other Workers to ask for, over a service binding with an entrypoint. Extend it, and
 * export the class from the Worker that holds the rules.
 *
 * @example
 * export class Limits extends WeirService<typeof config> {
 *   readonly config = config;
 * }
 *
 * // In the Worker that has it bound as LIMITS:
 * const { ok } = await env.LIMITS.limit("sign-up");
 *
 * A rule's `match` and `exempt` are about requests, and there is none here. A rule that is charged
 * by its response (`count`, or `cost: "header:NAME"`) is charged at once.
 *
 * `typeof config` gives the methods the names of the rules: another name does not compile.
 *
 * Every method throws a `RangeError` for a rule or a cost that there cannot be, and a `TypeError` for
 * a key that does not fit the rule's.
 */
export abstract class WeirService<C extends Config = Config> extends WorkerEntrypoint<Env> {
  /** The rules: what `defineConfig` made. */
  abstract readonly config: C;

  /**
   * Takes quota, in all windows of the rule or in none.
   *
   * @throws {RateLimitError} with `throws`, when there is no room; an `Error`, when that could not be
   * decided and the rule is `closed`
   */
  async limit(rule: RuleNameOf<C>, options: LimitOptions = {}): Promise<LimitResult> {
    checkOptions(options, CHARGED_OPTIONS);
    const { subject, limiter } = await find(this.config, this.env, rule, options);
    const cost = readCost(options.cost, -MAX_LIMIT);
    if (cost !== undefined && cost < 0) return giveBack(limiter, subject, -cost);
    const decision = await limiter.decide([subject], asking(options));
    return answer(decision, rule, options.throws === true);
  }

  /**
   * Asks for room, and takes nothing. By the time that it is used, somebody else may have taken it.
   *
   * @throws the same as `limit`
   */
  async check(rule: RuleNameOf<C>, options: CheckOptions = {}): Promise<LimitResult> {
    checkOptions(options, CHARGED_OPTIONS);
    const { subject, limiter } = await find(this.config, this.env, rule, options);
    readCost(options.cost, 0);
    const decision = await limiter.decide([subject], { ...asking(options), checkOnly: true });
    return answer(decision, rule, options.throws === true);
  }

  /**
   * What a client has left, in each window of a rule; of a rule in shadow mode too.
   *
   * @throws {Error} when the store cannot say
   */
  async getValue(rule: RuleNameOf<C>, options: ClientOptions = {}): Promise<Quota[]> {
    checkOptions(options, CLIENT_OPTIONS);
    const { subject, limiter } = await find(this.config, this.env, rule, options);
    const shown = { ...subject, rule: { ...subject.rule, mode: "enforce" } } as const;
    const decision = await limiter.decide([shown], { cost: 0, checkOnly: true });
    // What this isolate counts by itself is not what the client has used.
    const failure = decision.outcome === "undecided" ? decision : decision.local;
    if (failure) {
      throw new Error(`The rule "${rule}" could not be read: ${failure.cause}, ${failure.detail}.`);
    }
    return "quotas" in decision ? [...decision.quotas] : [];
  }

  /**
   * Makes a client new to a rule, in every tier: nothing used, nothing reserved, no ban.
   *
   * @throws {Error} when the store cannot do it
   */
  async reset(rule: RuleNameOf<C>, options: Pick<ClientOptions, "key"> = {}): Promise<void> {
    checkOptions(options, CLIENT_OPTIONS);
    const { subject, limiter } = await find(this.config, this.env, rule, options);
    await limiter.reset({ ...subject, windows: allWindowsOf(subject.rule) });
  }
}

// Functions, since whatever is a method of the class, callers can call.

/** A limiter, and the secret of the identities that it counts by. */
interface Prepared {
  readonly limiter: Limiter;
  readonly keySecret: string | undefined;
}

/** One for each configuration in an isolate, whose bindings never change. */
const prepared = new WeakMap<Config, Prepared>();

function prepare(config: Config, env: Env): Prepared {
  const known = prepared.get(config);
  if (known) return known;
  const { store, nativeLimiter, keySecret, storeFaults } = resolveBindings(config, env);
  if (store.kind === "misconfigured") logMisconfigured(store.fault);
  for (const fault of storeFaults) logMisconfigured(fault);
  const limiter = createLimiter(
    config,
    createStore(store, { ...config, onBreaker: logBreaker }),
    nativeLimiter,
  );
  const made = { limiter, keySecret };
  prepared.set(config, made);
  return made;
}

async function find(config: Config, env: Env, name: string, options: ClientOptions) {
  const { key, tier } = options;
  const rule = config.rules.find((each) => each.name === name);
  if (!rule) throw new RangeError(`There is no rule "${name}". ${namesOf(config.rules)}`);
  const windows = (tier !== undefined && rule.tiers?.windows.get(tier)) || rule.windows;
  const { limiter, keySecret } = prepare(config, env);
  const identity = await identityOfLimitKey(rule, key, config, keySecret);
  const subject: AppliedRule = { rule: chargedAtOnce(rule), windows, identity };
  return { subject, limiter };
}

/** Names that an error lists: enough to see a misspelling by. */
const LISTED = 20;

function namesOf(rules: readonly Rule[]): string {
  const names = rules.slice(0, LISTED).map(({ name }) => name);
  const more = rules.length - names.length;
  if (names.length === 0) return "There are none.";
  return `There are: ${names.join(", ")}${more > 0 ? `, and ${more} more` : ""}.`;
}

/** The rule without what a response would have to tell: there is none to wait for. */
function chargedAtOnce(rule: Rule): Rule {
  const { cost } = rule;
  return { ...rule, cost: typeof cost === "number" ? cost : 1, countStatus: undefined };
}

function allWindowsOf({ windows, tiers }: Rule): Window[] {
  const all = [...windows, ...(tiers ? [...tiers.windows.values()].flat() : [])];
  // A tier's window of the same length is the same counter, unless only one of them rolls over.
  const keyOf = (window: Window) => `${window.windowMs} ${rollsOver(window)}`;
  return [...new Map(all.map((window) => [keyOf(window), window])).values()];
}

function asking({ cost, reserve }: CheckOptions) {
  return { ...(cost !== undefined && { cost }), reserve: reserve === true };
}

function readCost(cost: unknown, least: number): number | undefined {
  if (cost === undefined) return undefined;
  if (Number.isInteger(cost) && (cost as number) >= least && (cost as number) <= MAX_LIMIT) {
    return cost as number;
  }
  throw new RangeError(`A cost is a whole number from ${least} to ${MAX_LIMIT}, not ${cost}.`);
}

async function giveBack(
  limiter: Limiter,
  subject: AppliedRule,
  cost: number,
): Promise<LimitResult> {
  const { rule } = subject;
  try {
    const quotas = await limiter.refund(subject, cost);
    return { ok: true, quotas: rule.mode === "shadow" ? [] : quotas };
  } catch (error) {
    const failure = undecided(error, [rule]);
    logUndecided(failure);
    // Whoever gives back has nothing to be denied.
    return { ok: true, undecided: failure.cause };
  }
}

function answer(decision: Decision, rule: string, throws: boolean): LimitResult {
  if (decision.outcome !== "undecided" && decision.local) {
    const { outcome, local } = decision;
    logUndecided(local, COUNTED_LOCALLY);
    if (throws && decision.outcome === "limited")
      throw new RateLimitError(rule, decision.retryAfterMs);
    return { ok: outcome === "allowed", undecided: local.cause };
  }
  switch (decision.outcome) {
    case "allowed": {
      const { shadow, reservationDelayMs } = decision;
      logShadow(shadow);
      const quotas = [...decision.quotas];
      return reservationDelayMs > 0
        ? { ok: true, retryAfterMs: reservationDelayMs, quotas }
        : { ok: true, quotas };
    }
    case "limited": {
      const { retryAfterMs, quotas } = decision;
      logShadow(decision.shadow);
      if (throws) throw new RateLimitError(rule, retryAfterMs);
      return { ok: false, retryAfterMs: retryAfterMs, quotas: [...quotas] };
    }
    case "undecided": {
      const { cause, open } = decision;
      logUndecided(decision);
      if (throws && !open) throw new Error(`The rule "${rule}" could not be decided: ${cause}.`);
      return { ok: open, undecided: cause };
    }
    default:
      return decision satisfies never;
  }
}
