import { hasConcurrent } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { Demand, UnusedQuota } from "../engine/counter.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { inTime } from "../stores/deadline.ts";
import type { Answer, Group, KnownState, Store } from "../stores/store.ts";
import { AheadGate } from "./ahead.ts";
import { blockedVerdictOf, certainDenialOf, certainTalliesOf, isBlocked } from "./blocked.ts";
import { Clients } from "./clients.ts";
import { type CostOf, chargedCountersOf, type ResponseCharge, responseChargesOf } from "./cost.ts";
import {
  addToGroups,
  type CounterGroups,
  countersOf,
  type DecideOptions,
  emptyGroups,
  quotaCounters,
  type Reserve,
  type RuleCounter,
  ruleCountersOf,
  storeGroupsOf,
  timeOf,
  waits,
} from "./counters.ts";
import {
  type Allowed,
  type Decision,
  decisionOf,
  type Limited,
  mayBeCharged,
  NO_ENFORCED_RULE,
  pendingVerdictOf,
  policiesOf,
  type Quota,
  quotasOf,
  type RuleVerdict,
  settledVerdictsOf,
  singleVerdictOf,
  toUndecided,
  undecidedVerdict,
  withMarks,
} from "./decision.ts";
import { createFallback, type Fallback, type NativeLimiter } from "./fallback.ts";
import { HeldSlots, type SlotOptions } from "./held-slots.ts";
import {
  type Decided,
  mayPassLater,
  type Place,
  type WaitingRequest,
  WaitingRoom,
} from "./waiting-room.ts";

/**
 * The part of the deadline that identifying the client may take without shortening the store's deadline. Most
 * requests take less, and so need no wrapper with a shorter deadline.
 */
const NEGLIGIBLE_SHARE = 0.05;

/**
 * The maximum number of calls in {@link SHADOW_PERIOD_MS} that an isolate makes for rules in shadow mode after
 * denials without a call. Otherwise a denied client could cause a call with each request, by varying the key of a
 * rule in shadow mode.
 */
const SHADOW_CALLS = 20;
const SHADOW_PERIOD_MS = 10_000;

/** The maximum number of slots that an isolate remembers after a failed return. Others expire. */
const MAX_LOST_SLOTS = 1000;
/** The maximum number of remembered slots that are returned after one decision. They share a few calls. */
const MAX_RETURNED_SLOTS = 32;

/**
 * After this multiple of the deadline, every call to the store has ended or was aborted: a call begins within one
 * deadline, and is aborted after two. If a proxy still carries out an aborted call later, the slot that it takes expires.
 */
const LATE_SHARE = 3;

interface LimiterConfig extends Pick<Config, "clock" | "prefix" | "timeoutMs"> {
  /** Called after each charge after a decision, which is negative if quota is given back. Must not throw. */
  readonly onLateCharge?: ((appliedRule: AppliedRule, cost: number) => void) | undefined;
}

interface LimiterOptions {
  /** Called for rules with `onError: "local"` if the store fails. */
  readonly nativeLimiter?: NativeLimiter | undefined;
  /** Keeps the Worker alive until a task has ended. */
  readonly background?: (task: Promise<unknown>) => void;
  /** Returns this isolate's time, in milliseconds since the Unix epoch. @default Date.now */
  readonly time?: () => number;
}

/**
 * Decides requests by the rules that apply to them, and charges rules whose cost depends on the
 * response. Loads in Node too.
 */
export class Limiter {
  /** Reads and changes the stored states of clients. */
  readonly clients: Clients;
  readonly #config: LimiterConfig;
  readonly #store: Store;
  readonly #fallback: Fallback;
  readonly #background: (task: Promise<unknown>) => void;
  readonly #time: () => number;
  /** The number of the period that `#shadowCalls` counts. */
  #shadowPeriod = 0;
  #shadowCalls = 0;
  /**
   * The slots whose return has failed. After the next answers of the store, they are returned, the last ones first.
   * Those that may never have been taken come first, so that they are the first to be forgotten.
   */
  readonly #lostSlots: UnusedQuota[] = [];
  readonly #slotOptions: SlotOptions;
  readonly #room: WaitingRoom;
  readonly #aheadGate: AheadGate;

  constructor(
    config: LimiterConfig,
    store: Store,
    { nativeLimiter, background = () => {}, time = () => Date.now() }: LimiterOptions = {},
  ) {
    this.clients = new Clients(config, store);
    this.#config = config;
    this.#store = store;
    this.#fallback = createFallback(config, nativeLimiter);
    this.#background = background;
    this.#time = time;
    this.#room = new WaitingRoom(config.timeoutMs, time);
    this.#aheadGate = new AheadGate(config, time);
    this.#slotOptions = {
      lateMs: LATE_SHARE * config.timeoutMs,
      now: () => this.#now(),
      time,
      background,
      onLost: (slots, isTaken) => {
        if (isTaken) this.#lostSlots.push(...slots);
        else this.#lostSlots.unshift(...slots);
        this.#lostSlots.splice(0, this.#lostSlots.length - MAX_LOST_SLOTS);
      },
      onReturned: (slots) => this.#room.slotsReturned(slots),
    };
  }

  /**
   * Decides a request by all rules that apply to it. Never rejects. One call to the store decides all rules whose
   * client is known. The client of a rule in shadow mode may become known later.
   *
   * @param spentMs the time that Weir needed to identify the client, in milliseconds. If this time is long, the store
   * gets less time
   */
  async decide(
    appliedRules: readonly AppliedRule[],
    options?: DecideOptions,
    spentMs = 0,
  ): Promise<Decision> {
    const slots = appliedRules.some(mayTakeSlot) ? new HeldSlots(this.#slotOptions) : NO_SLOTS;
    const signal = appliedRules.some(({ rule }) => waits(rule)) ? options?.signal : undefined;
    const waiting = options && signal && this.#waitingOf(appliedRules, options, signal, slots);
    const decided = await this.#decide(appliedRules, options, spentMs, slots, waiting);
    const waitedMs = waiting?.waitedMs;
    const decision = waitedMs === undefined ? decided : { ...decided, waitedMs };
    if (slots === NO_SLOTS) return decision;
    // A rule in shadow mode whose client is identified later may still take a slot.
    const mayTakeLater = appliedRules.some((each) => each.pendingRules && mayTakeSlot(each));
    if (slots.isEmpty && !mayTakeLater) return decision;
    if (decision.outcome === "allowed") return { ...decision, slots };
    slots.release();
    return decision;
  }

  async #decide(
    appliedRules: readonly AppliedRule[],
    options: DecideOptions | undefined,
    spentMs: number,
    slots: HeldSlots,
    waiting: WaitingRequest | undefined,
  ): Promise<Decision> {
    const { groups, blocked, pendingRules } = this.#groupsOf(appliedRules, options);
    // A denial from memory must be known first: such a request does not pass ahead, and rules in shadow mode have a
    // separate call.
    const isAhead = options?.ahead && groups.enforced.some(({ rule }) => rule.async);
    const certain =
      isAhead || groups.others.length > 0 || pendingRules.length > 0
        ? this.#certainDenialOf(groups.enforced, options)
        : certainDenialOf(groups.enforced, this.#time());
    const place = certain ? undefined : waiting && this.#room.enter(groups.enforced, waiting);
    const denial = certain ?? denialIn(place && this.#room.refuse(place));
    const pending = pendingRules.map((each) =>
      pendingVerdictOf(each, this.#decidePendingRule(each, options, denial ? undefined : slots)),
    );
    if (denial) return this.#withShadow(denial, groups, [...blocked, ...pending]);
    const ahead = isAhead && !place && this.#rulesAhead(groups.enforced);
    if (ahead) return this.#passAhead(ahead, groups, [...blocked, ...pending], slots);
    try {
      const restMs = this.#restMs(appliedRules, spentMs);
      return await this.#decideGroups(groups, blocked, pending, restMs, slots, place);
    } catch (error) {
      this.#aheadGate.fail();
      const rules = appliedRules.map(({ rule }) => rule);
      const undecided = toUndecided(error, rules);
      if (!this.#fallback.covers(rules)) return undecided;
      const decision = await this.#fallback.decideLocally(appliedRules, undecided, options, slots);
      return decision.outcome === "undecided"
        ? decision
        : withVerdicts(decision, blocked.filter(isShadow));
    }
  }

  /**
   * Denies a request without waiting, if some of its rules certainly deny it: by a limit of 0, by an operator's
   * block, or from memory. Never throws.
   *
   * @param appliedRules the rules with a known client and tier. Their cost may be the lowest possible cost
   * @param options with the `random` of the later decision, so that both decisions choose the same shards
   * @returns undefined if the request must be decided by all of its rules
   */
  denialOf(appliedRules: readonly AppliedRule[], options?: DecideOptions): Limited | undefined {
    try {
      const { groups, blocked } = this.#groupsOf(appliedRules, options);
      const denial = this.#certainDenialOf(groups.enforced, options);
      return denial && this.#withShadow(denial, groups, blocked);
    } catch {
      // The complete decision reports the error.
      return undefined;
    }
  }

  /** Whether this isolate's leases cover all enforced rules of a request, so that it needs no call to the store. */
  isCovered(appliedRules: readonly AppliedRule[], options?: DecideOptions): boolean {
    try {
      const { enforced } = this.#groupsOf(appliedRules, options).groups;
      if (enforced.length === 0) return false;
      return this.#store.stateOf?.(countersOf(enforced), this.#now()).isCovered === true;
    } catch {
      return false;
    }
  }

  /**
   * Charges the rules that have admitted the request, with one call to the store. After a reserve, charges or gives
   * back only the difference. A rule in shadow mode, and a rule under which the request has passed ahead, is charged
   * after the store has decided it, because its reserve is unknown until then.
   *
   * @param decision if this isolate decided alone, only the counters in its memory are charged
   * @returns the updated quotas of the enforced rules that were charged in the store
   * @throws {StoreError} if the call to the store failed. The store may have charged the counters anyway
   */
  async chargeResponse(
    { verdicts, storeFailure }: Pick<Allowed, "verdicts" | "storeFailure">,
    costOf: CostOf,
  ): Promise<Quota[]> {
    const shadowVerdicts = verdicts.filter((each) => isShadow(each) && mayBeCharged(each));
    if (shadowVerdicts.length > 0) {
      this.#background(this.#chargeShadowRules(shadowVerdicts, costOf).catch(() => {}));
    }
    const decided = await settledVerdictsOf(verdicts.filter((each) => !isShadow(each)));
    const charges = responseChargesOf(decided, costOf);
    if (charges.length === 0) return [];
    if (storeFailure) {
      await this.#fallback.charge(charges);
      this.#reportCharges(charges);
      return [];
    }
    try {
      return await this.#charge(charges);
    } catch (error) {
      // The store charged the reserves, not this isolate. So this isolate gives no reserve back.
      await this.#fallback.charge(charges.filter(({ cost }) => cost > 0));
      throw error;
    }
  }

  /**
   * Charges or gives back the difference between the used quota and a reserve. Throws like
   * `chargeResponse`.
   *
   * @param cost the difference; negative if quota is given back
   */
  settle(appliedRule: AppliedRule, reserve: Reserve, cost: number): Promise<Quota[]> {
    return this.#charge([{ verdict: { appliedRule, reserve }, cost }]);
  }

  /** Gives quota back, at most as much as was used. Throws like `chargeResponse`. */
  async refund(appliedRule: AppliedRule, quota: number): Promise<Quota[]> {
    const counters = ruleCountersOf(appliedRule, this.#config.prefix, { cost: -quota });
    const quotas = await this.#adjust(counters);
    this.#config.onLateCharge?.(appliedRule, -quota);
    return quotas;
  }

  /**
   * Returns the counters of the rules, in groups. Also returns the rules whose client is identified later, and the
   * verdicts of rules that are not enforced and under which the client is blocked.
   */
  #groupsOf(appliedRules: readonly AppliedRule[], options?: DecideOptions) {
    const groups = emptyGroups();
    const blocked: RuleVerdict[] = [];
    const pendingRules: AppliedRule[] = [];
    for (const appliedRule of appliedRules) {
      if (appliedRule.pendingRules) {
        pendingRules.push(appliedRule);
        continue;
      }
      const ruleCounters = ruleCountersOf(appliedRule, this.#config.prefix, options);
      if (appliedRule.rule.mode !== "enforce" && isBlocked(ruleCounters)) {
        blocked.push(blockedVerdictOf(ruleCounters, this.#time()));
      } else addToGroups(groups, ruleCounters);
    }
    return { groups, blocked, pendingRules };
  }

  /**
   * Adds the verdicts of rules in shadow mode to a denial that needed no call, and decides these rules. Such a denial
   * does not count under rules with the mode `mark`, which would lose quota that the client has not used.
   *
   * @param others the verdicts of other rules
   */
  #withShadow(denial: Limited, groups: CounterGroups, others: readonly RuleVerdict[]): Limited {
    const shadow = groups.others.filter(([each]) => each?.rule.mode === "shadow");
    const decided = this.#decideOthers(shadow, undefined);
    return withVerdicts(denial, [...others.filter(isShadow), ...decided]);
  }

  /** @returns undefined if only the store can tell whether the enforced rules deny the request */
  #certainDenialOf(
    enforced: readonly RuleCounter[],
    { signal }: DecideOptions = {},
  ): Limited | undefined {
    if (enforced.length === 0) return undefined;
    const denial = certainDenialOf(enforced, this.#time());
    if (denial) return denial;
    const answer = this.#store.denialOf?.(countersOf(enforced), this.#now());
    const known = answer && { counters: enforced, answer };
    return known && signal && mayPassLater(known) ? undefined : denialIn(known);
  }

  /** Returns the Worker's time; undefined if the store's clock determines the windows. */
  #now(): number | undefined {
    return timeOf(this.#config, this.#time());
  }

  /**
   * Decides groups with at most one call. Waits only for the enforced rules and the rules with the mode `mark`.
   *
   * @param restMs the deadline, if it is shorter than the store's own deadline
   * @throws {StoreError} if the enforced rules could not be decided
   */
  async #decideGroups(
    groups: CounterGroups,
    blocked: readonly RuleVerdict[],
    pending: readonly RuleVerdict[],
    restMs: number | undefined,
    slots: HeldSlots,
    place: Place | undefined,
  ): Promise<Allowed | Limited> {
    const { enforced, others } = groups;
    const mayAsk = !place || !this.#room.isBehindOthers(place);
    const answers = this.#decideInStore(
      storeGroupsOf(mayAsk ? groups : { enforced: [], others }),
      slots,
    );
    const timed = (
      restMs === undefined ? answers : answers.map((answer) => inTime(() => answer, restMs))
    ).values();
    const next = () => timed.next().value as Promise<Answer>;
    const own = enforced.length > 0 && mayAsk ? next() : undefined;
    const otherVerdicts = others.map((each) => otherVerdictOf(each, next()));
    let decision: Allowed | Limited = NO_ENFORCED_RULE;
    if (place) {
      const first = own?.then((answer) => ({ counters: enforced, answer }));
      const { counters, answer } = await this.#room.takeTurn(place, first);
      // A live override may have ended all limits meanwhile.
      if (counters.length > 0) decision = decisionOf(answer, counters);
    } else if (own) {
      const answer = await own;
      this.#aheadGate.observe(answer);
      decision = decisionOf(answer, enforced);
    }
    const verdicts = [...otherVerdicts, ...blocked, ...pending];
    // After a denial, no code waits for the marks.
    if (decision.outcome === "limited") return withVerdicts(decision, verdicts);
    const marks = await settledVerdictsOf(verdicts.filter((each) => !isShadow(each)));
    return withVerdicts(withMarks(decision, marks), verdicts.filter(isShadow));
  }

  /** Returns the rules of a request that may pass ahead; undefined if it must wait for the store. */
  #rulesAhead(enforced: readonly RuleCounter[]): RuleAhead[] | undefined {
    const rules = byRule(enforced).map((counters): RuleAhead => {
      const known = this.#store.stateOf?.(countersOf(counters), this.#now());
      return { counters, isCovered: false, tallies: [], ...known };
    });
    const open = rules.filter(({ isCovered }) => !isCovered).map(({ counters }) => counters);
    const isAsync = open.length > 0 && open.every(([first]) => first?.rule.async);
    return isAsync && this.#aheadGate.mayPass(open) ? rules : undefined;
  }

  /**
   * Lets a request pass, and decides its rules in the background. Each rule is decided alone: a rule that has admitted
   * the request stays charged although another one denies it, because the request has passed.
   */
  async #passAhead(
    rules: readonly RuleAhead[],
    { enforced, others }: CounterGroups,
    otherVerdicts: readonly RuleVerdict[],
    slots: HeldSlots,
  ): Promise<Allowed> {
    const groups = [...rules.map(({ counters }) => counters), ...others];
    const answers = this.#decideInStore(groups.map(countersOf), slots);
    const verdicts = groups.map((each, at) => otherVerdictOf(each, answers[at] as Promise<Answer>));
    const late: RuleVerdict[] = [];
    const covered: RuleVerdict[] = [];
    const now = this.#time();
    const quotas = rules.map(({ counters, isCovered, tallies }, at): readonly Quota[] => {
      const verdict = verdicts[at] as RuleVerdict;
      (isCovered ? covered : late).push(verdict);
      if (!isCovered) this.#aheadGate.pass(counters, answers[at] as Promise<Answer>);
      verdict.pendingVerdict?.then(([decided]) => {
        if (decided?.quotas.length) quotas[at] = decided.quotas;
      });
      return quotasOf(counters, { admitted: true, tallies, now });
    });
    const lateVerdicts = settledVerdictsOf(late);
    this.#background(lateVerdicts);
    const decided = await settledVerdictsOf(covered);
    return {
      ...NO_ENFORCED_RULE,
      quotas: decided.flatMap((each) => each.quotas),
      verdicts: [...decided, ...late, ...verdicts.slice(rules.length), ...otherVerdicts],
      ahead: {
        policies: () => policiesOf(enforced, now),
        quotas: () => quotas.flat(),
        verdicts: lateVerdicts,
      },
    };
  }

  #waitingOf(
    appliedRules: readonly AppliedRule[],
    options: DecideOptions,
    signal: AbortSignal,
    slots: HeldSlots,
  ): WaitingRequest {
    return {
      arrivedAt: this.#time(),
      signal,
      decide: async () => {
        const rules = options.current?.() ?? appliedRules;
        const enforced = rules.filter(({ rule }) => rule.mode === "enforce");
        const counters = this.#groupsOf(enforced, options).groups.enforced;
        const now = this.#time();
        const tallies = certainTalliesOf(counters, now);
        if (tallies) return { counters, answer: { admitted: false, now, tallies } };
        const [answered] = this.#decideInStore([countersOf(counters)], slots);
        const answer = counters.length > 0 ? await answered : undefined;
        return { counters, answer: answer ?? { admitted: true, now, tallies: [] } };
      },
    };
  }

  #decideInStore(groups: readonly Group[], slots?: HeldSlots): readonly Promise<Answer>[] {
    if (groups.length === 0) return [];
    const answers = this.#store.decide(groups, this.#now());
    if (this.#lostSlots.length > 0) this.#background(this.#returnLost(answers[0]));
    if (slots === NO_SLOTS) return answers;
    for (const [at, group] of groups.entries()) {
      slots?.add(this.#store, group, answers[at] as Promise<Answer>);
    }
    return answers;
  }

  /** Returns some of the slots whose return has failed, if the store has answered. Never rejects. */
  async #returnLost(answered: Promise<Answer> | undefined): Promise<void> {
    const answer = await answered?.catch(() => undefined);
    if (!answer || answer.fromMemory) return;
    // A slot whose return fails again goes to the other end, so that all others have their turn.
    const { onLost, onReturned } = this.#slotOptions;
    const returns = this.#lostSlots.splice(-MAX_RETURNED_SLOTS).map((slot) =>
      this.#store.adjust([], this.#now(), [slot]).then(
        () => onReturned([slot]),
        () => onLost([slot], false),
      ),
    );
    await Promise.all(returns);
  }

  /**
   * Returns the time left for the store's call, but at least half of the decision's deadline. Returns undefined if
   * nearly the whole time is left.
   */
  #restMs(appliedRules: readonly AppliedRule[], spentMs: number): number | undefined {
    const { timeoutMs } = this.#config;
    const reservedMs = this.#fallback.reservedMs(appliedRules);
    if (reservedMs === 0 && spentMs <= timeoutMs * NEGLIGIBLE_SHARE) return undefined;
    return Math.max(timeoutMs / 2, timeoutMs - spentMs - reservedMs);
  }

  /** Decides a rule in shadow mode whose client is identified later. Never rejects. */
  async #decidePendingRule(
    appliedRule: AppliedRule,
    options: DecideOptions | undefined,
    slots: HeldSlots | undefined,
  ): Promise<readonly RuleVerdict[]> {
    try {
      const { groups, blocked } = this.#groupsOf((await appliedRule.pendingRules) ?? [], options);
      const decided = this.#decideOthers(groups.others, slots);
      return [...blocked, ...(await settledVerdictsOf(decided))];
    } catch (error) {
      return [undecidedVerdict(appliedRule, error)];
    }
  }

  /**
   * Decides rules that are not enforced in a separate call.
   *
   * @param slots undefined if the request is denied without a call. It then takes no slot, and the rules are decided
   * only within {@link SHADOW_CALLS}
   */
  #decideOthers(
    groups: readonly (readonly RuleCounter[])[],
    slots: HeldSlots | undefined,
  ): RuleVerdict[] {
    const isDenied = !slots;
    if (groups.length === 0 || (isDenied && !this.#takeShadowCall())) return [];
    const storeGroups = groups.map(countersOf);
    const answers = this.#decideInStore(slots ? storeGroups : storeGroups.map(withoutSlots), slots);
    if (isDenied) {
      Promise.allSettled(answers).then((settled) => {
        const isFromMemory = settled.every(
          (each) => each.status === "fulfilled" && each.value.fromMemory,
        );
        if (isFromMemory) this.#shadowCalls = Math.max(0, this.#shadowCalls - 1);
      });
    }
    return groups.map((each, at) => otherVerdictOf(each, answers[at] as Promise<Answer>));
  }

  /** Adds each counter's cost in the store, and returns the quotas. Throws like `chargeResponse`. */
  async #adjust(all: readonly RuleCounter[]): Promise<Quota[]> {
    const ruleCounters = quotaCounters(all);
    if (ruleCounters.length === 0) return [];
    const now = this.#now();
    const tallies = await this.#store.adjust(countersOf(ruleCounters), now);
    return quotasOf(ruleCounters, { admitted: true, tallies, now: now ?? this.#time() });
  }

  /** Charges rules in shadow mode in a separate call, so that its failure affects no enforced rule. */
  async #chargeShadowRules(verdicts: readonly RuleVerdict[], costOf: CostOf): Promise<void> {
    const charges = responseChargesOf(await settledVerdictsOf(verdicts), costOf);
    if (charges.length > 0) await this.#charge(charges);
  }

  #reportCharges(charges: readonly ResponseCharge[]): void {
    const { onLateCharge } = this.#config;
    for (const { verdict, cost } of charges) onLateCharge?.(verdict.appliedRule, cost);
  }

  async #charge(charges: readonly ResponseCharge[]): Promise<Quota[]> {
    const counters = charges.flatMap((each) => chargedCountersOf(each, this.#config.prefix));
    const quotas = await this.#adjust(counters);
    this.#reportCharges(charges);
    return quotas;
  }

  /** Counts a call for rules in shadow mode. @returns false if the period has no call left */
  #takeShadowCall(): boolean {
    const period = Math.floor(this.#time() / SHADOW_PERIOD_MS);
    if (period !== this.#shadowPeriod) {
      this.#shadowPeriod = period;
      this.#shadowCalls = 0;
    }
    if (this.#shadowCalls >= SHADOW_CALLS) return false;
    this.#shadowCalls += 1;
    return true;
  }
}

const NO_SLOTS = new HeldSlots({
  lateMs: 0,
  now: () => undefined,
  time: () => 0,
  background: () => {},
  onLost: () => {},
  onReturned: () => {},
});

/** A rule of a request that passes ahead, and what this isolate knows of the client. */
interface RuleAhead extends KnownState {
  readonly counters: readonly RuleCounter[];
}

function byRule(ruleCounters: readonly RuleCounter[]): RuleCounter[][] {
  const rules = new Map<AppliedRule, RuleCounter[]>();
  for (const each of ruleCounters) {
    const own = rules.get(each.appliedRule);
    if (own) own.push(each);
    else rules.set(each.appliedRule, [each]);
  }
  return [...rules.values()];
}

function mayTakeSlot({ rule, windows, pendingRules }: AppliedRule): boolean {
  return pendingRules ? hasConcurrent(rule) : windows.at(-1)?.concurrent === true;
}

function withoutSlots(counters: readonly Demand[]): Demand[] {
  return counters.map((counter) =>
    counter.slot === undefined ? counter : { ...counter, slot: 0, checkOnly: true },
  );
}

function denialIn(decided: Decided | undefined): Limited | undefined {
  const decision = decided && decisionOf(decided.answer, decided.counters);
  return decision?.outcome === "limited" ? decision : undefined;
}

function isShadow({ appliedRule }: RuleVerdict): boolean {
  return appliedRule.rule.mode === "shadow";
}

/** Returns the verdict of a rule that is not enforced, before the store has answered. */
function otherVerdictOf(
  ruleCounters: readonly RuleCounter[],
  answered: Promise<Answer>,
): RuleVerdict {
  const [{ appliedRule }] = ruleCounters as [RuleCounter];
  const verdict = singleVerdictOf(ruleCounters, answered);
  return pendingVerdictOf(
    appliedRule,
    verdict.then((each) => [each]),
  );
}

function withVerdicts<D extends Allowed | Limited>(decision: D, others: readonly RuleVerdict[]): D {
  return others.length > 0
    ? { ...decision, verdicts: [...decision.verdicts, ...others] }
    : decision;
}
