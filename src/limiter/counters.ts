import { formatDuration } from "../config/duration.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Counter } from "../engine/counter.ts";
import type { AppliedRule } from "../request/applied-rule.ts";

/** What is asked of a rule's counters, where it is not just a request. */
export interface DecideOptions {
  /** Quota to take; by default the rule's cost. Negative, where it is given back. */
  readonly cost?: number;
  /** Whether quota of windows to come may be taken, as far as the rule allows. */
  readonly reserve?: boolean;
  /** Ask for room, take nothing. */
  readonly checkOnly?: boolean;
}

/** A counter, and what it counts for. */
export interface RuleCounter {
  readonly rule: Rule;
  readonly window: Window;
  /** What the counter may hold without reserving: its share of the capacity, if it is a shard. */
  readonly capacity: number;
  readonly counter: Counter;
}

type Shards = readonly [number, number];

/** The shards that a request was last decided by: what its response cost is charged to them. */
const decidedBy = new WeakMap<AppliedRule, Shards>();

/**
 * One counter for each window of the rule that a request falls under. Of several shards, it is
 * counted by two for all of its windows.
 */
export function ruleCountersOf(
  subject: AppliedRule,
  prefix: string,
  ask?: DecideOptions,
): RuleCounter[] {
  const { shards } = subject.rule;
  const two = shards > 1 ? twoOf(shards) : undefined;
  if (two) decidedBy.set(subject, two);
  return countersIn(two, subject, prefix, ask);
}

/**
 * The counters of a request that has been decided. Other shards than those that had room for it may
 * have none.
 */
export function decidedCountersOf(
  subject: AppliedRule,
  prefix: string,
  ask?: DecideOptions,
): RuleCounter[] {
  const two = decidedBy.get(subject);
  return two ? countersIn(two, subject, prefix, ask) : ruleCountersOf(subject, prefix, ask);
}

function countersIn(
  [shard, other]: Shards | readonly [] = [],
  subject: AppliedRule,
  prefix: string,
  ask: DecideOptions = {},
): RuleCounter[] {
  return subject.windows.map((window): RuleCounter => {
    const entry = ruleCounterOf(subject, window, prefix, ask, shard);
    if (other === undefined) return entry;
    // The lower of two shards has the larger part, or one as large.
    const { counter: alternative } = ruleCounterOf(subject, window, prefix, ask, other);
    return { ...entry, counter: { ...entry.counter, alternative } };
  });
}

/** All counters of a rule's client: of every shard, where there are several. */
export function allCountersOf(subject: AppliedRule, prefix: string): RuleCounter[] {
  const { rule, windows } = subject;
  const shards = rule.shards > 1 ? Array.from({ length: rule.shards }, (_, i) => i) : [undefined];
  return windows.flatMap((window) =>
    shards.map((shard) => ruleCounterOf(subject, window, prefix, { cost: 0 }, shard)),
  );
}

function ruleCounterOf(
  { rule, identity }: AppliedRule,
  window: Window,
  prefix: string,
  ask: DecideOptions,
  shard: number | undefined,
): RuleCounter {
  const who = shard === undefined ? identity : `${identity}#${shard}`;
  const share = (quota: number) =>
    shard === undefined ? quota : shardQuota(quota, rule.shards, shard);
  const { windowMs } = window;
  const [limit, capacity] = [share(window.limit), share(window.capacity)];
  const reservable = ask.reserve ? share(window.maxReserved) : 0;
  const rolls = rollsOver(window);
  const counter: { -readonly [Field in keyof Counter]: Counter[Field] } = {
    key: `${prefix}:${rule.name}:${labelOf(windowMs)}:${who}`,
    identity: who,
    limit,
    windowMs,
    offsetMs: rule.spread ? spreadOf(identity, windowMs) : window.offsetMs,
    cost: ask.cost ?? (typeof rule.cost === "number" ? rule.cost : 1),
    ceiling: capacity + reservable,
  };
  // Not spread into the literal: most counters have one of these at most, and each spread takes time.
  if (isLeasable(rule, rolls)) counter.leasable = true;
  if (rolls) counter.rollsOver = true;
  if (rule.mode === "shadow") counter.shadow = true;
  if (ask.checkOnly || chargesLater(rule)) counter.checkOnly = true;
  if (rule.banMs !== undefined) counter.banMs = rule.banMs;
  if (ask.checkOnly) counter.neverBans = true;
  return { rule, window, capacity, counter };
}

const labels = new Map<number, string>();

/** A window's length as keys have it, which is written out once, not per request. */
function labelOf(windowMs: number): string {
  const known = labels.get(windowMs);
  if (known !== undefined) return known;
  const label = formatDuration(windowMs / 1000);
  labels.set(windowMs, label);
  return label;
}

/**
 * Whether isolates may take quota in blocks. Not where a ban is to hold everywhere at once, nor where
 * quota outlives its window, nor where it is spread already.
 */
function isLeasable(rule: Rule, rolls: boolean): boolean {
  const { lease, banMs, shards } = rule;
  return lease && banMs === undefined && !rolls && shards === 1 && !chargesLater(rule);
}

/** Whether a counter outlives its window, with what is used of it. */
export function rollsOver({ limit, capacity, maxReserved }: Window): boolean {
  return capacity > limit || maxReserved > 0;
}

/** Whether what a request costs is only known from its response. */
export function chargesLater({ cost, countStatus }: Rule): boolean {
  return countStatus !== undefined || typeof cost !== "number";
}

/** A shard's part of a quota: the parts differ by one at most, and add up to the whole. */
export function shardQuota(quota: number, shards: number, shard: number): number {
  return Math.floor(quota / shards) + (shard < quota % shards ? 1 : 0);
}

/** Two different shards at random: with the roomier of two, all fill up nearly alike. */
function twoOf(shards: number): Shards {
  const one = Math.floor(Math.random() * shards);
  const other = (one + 1 + Math.floor(Math.random() * (shards - 1))) % shards;
  return one < other ? [one, other] : [other, one];
}

/** Digits of an identity that the offset is drawn from: 48 bits, evenly spread as a hash is. */
const SPREAD_DIGITS = 8;
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Where a client's windows begin, so that not all of them begin at once: always the same for it. */
function spreadOf(identity: string, windowMs: number): number {
  let number = 0;
  for (const digit of identity.slice(0, SPREAD_DIGITS)) {
    number = number * 64 + Math.max(0, BASE64URL.indexOf(digit));
  }
  return number % windowMs;
}
