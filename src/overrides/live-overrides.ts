import type { DeploymentMode } from "../config/bindings.ts";
import { isRecord } from "../config/fields.ts";
import { type Rule, shadowed, type Window } from "../config/rule.ts";
import { MAX_LIMIT } from "../config/window.ts";
import type { RuleMatch } from "../request/matcher.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import {
  type ClientEffect,
  type ClientOverride,
  emptyWindows,
  limitedWindows,
  MAX_FACTOR,
  type Override,
  type OverrideUpdate,
  overrideId,
  type RuleEffect,
  scaledWindows,
} from "./override.ts";

/** The windows of a configuration, by the windows that a rule's override has derived from them. */
const configured = new WeakMap<readonly Window[], readonly Window[]>();

/** Returns the windows as the configuration has them, without the factor of a rule's override. */
export function configuredWindows(windows: readonly Window[]): readonly Window[] {
  return configured.get(windows) ?? windows;
}

/** The override of one rule in this isolate. */
export class RuleChange {
  readonly expiresAt: number;
  readonly #effect: RuleEffect;
  readonly #deploymentMode: DeploymentMode;
  /**
   * The changed rules. Gateways, middlewares and services have different objects for the same rule. Each is
   * changed once, because caches recognise a rule by its object.
   */
  readonly #changed = new WeakMap<Rule, Rule>();

  constructor(effect: RuleEffect, expiresAt: number, deploymentMode: DeploymentMode) {
    this.#effect = effect;
    this.expiresAt = expiresAt;
    this.#deploymentMode = deploymentMode;
  }

  /** Returns the rule as the override changes it; undefined if the rule is off. */
  changedRule(rule: Rule): Rule | undefined {
    if (this.#effect.mode === "off") return undefined;
    const existing = this.#changed.get(rule);
    if (existing) return existing;
    const changed = this.#withMode(this.#withFactor(rule));
    this.#changed.set(rule, changed);
    return changed;
  }

  /** In a deployment whose mode is `shadow`, every rule stays in shadow mode. */
  #withMode(rule: Rule): Rule {
    const { mode } = this.#effect;
    if (mode === "shadow") return shadowed(rule);
    if (mode === "enforce" && this.#deploymentMode === "enforce") return { ...rule, mode };
    return rule;
  }

  #withFactor(rule: Rule): Rule {
    const { factor } = this.#effect;
    if (factor === undefined) return rule;
    const scale = (windows: readonly Window[]) => {
      const result = scaledWindows(windows, factor);
      configured.set(result, windows);
      return result;
    };
    const { tiers } = rule;
    const tierWindows = [...(tiers?.windows ?? [])].map(
      ([name, windows]) => [name, scale(windows)] as const,
    );
    return {
      ...rule,
      windows: scale(rule.windows),
      tiers: tiers && { ...tiers, windows: new Map(tierWindows) },
    };
  }
}

/** The override of one client under one rule. An isolate may have 10,000 of them, so it is one object. */
type ClientChange = ClientEffect & { readonly expiresAt: number };

/** The overrides of clients in this isolate. */
export class ClientChanges {
  /** The changes by rule and identity. A rule without changes has no map. */
  readonly #byRule = new Map<string, Map<string, ClientChange>>();
  #size = 0;

  /** The number of overrides, including those that have ended and are not removed yet. */
  get size(): number {
    return this.#size;
  }

  /** Whether a client of the rule may have an override. */
  hasRule(rule: string): boolean {
    return this.#byRule.has(rule);
  }

  set({ rule, client, effect, expiresAt }: ClientOverride): void {
    let clients = this.#byRule.get(rule);
    if (!clients) {
      clients = new Map();
      this.#byRule.set(rule, clients);
    }
    this.#size -= clients.size;
    clients.set(client, changeOf(effect, expiresAt));
    this.#size += clients.size;
  }

  delete(rule: string, client: string): void {
    const clients = this.#byRule.get(rule);
    if (!clients?.delete(client)) return;
    this.#size -= 1;
    if (clients.size === 0) this.#byRule.delete(rule);
  }

  clear(): void {
    this.#byRule.clear();
    this.#size = 0;
  }

  deleteEnded(now: number): void {
    for (const [rule, clients] of this.#byRule) {
      for (const [client, { expiresAt }] of clients) {
        if (expiresAt <= now) this.delete(rule, client);
      }
    }
  }

  /**
   * Returns an applied rule with the override of its client; the given object if there is none.
   *
   * @returns undefined if the rule does not count the client
   */
  changedRule(appliedRule: AppliedRule, now: number): AppliedRule | undefined {
    const { rule, identity } = appliedRule;
    const change = this.#byRule.get(rule.name)?.get(identity);
    if (!change || change.expiresAt <= now) return appliedRule;
    // The client's override replaces the factor of the rule's override.
    const windows = configuredWindows(appliedRule.windows);
    switch (change.kind) {
      case "limits":
        return { ...appliedRule, windows: limitedWindows(windows, change.limits) };
      case "factor":
        return { ...appliedRule, windows: scaledWindows(windows, change.factor) };
      case "unlimited":
        return undefined;
      case "blocked":
        return { ...appliedRule, windows: emptyWindows(windows), blockedUntil: change.expiresAt };
      default:
        // During a deploy, a newer version may have set an override that this version does not know.
        change satisfies never;
        return appliedRule;
    }
  }
}

/**
 * Returns the change that an isolate keeps. A received object has texts and spare fields of its own, which
 * are not kept.
 */
function changeOf(effect: ClientEffect, expiresAt: number): ClientChange {
  switch (effect.kind) {
    case "limits":
      return { kind: "limits", limits: { ...effect.limits }, expiresAt };
    case "factor":
      return { kind: "factor", factor: effect.factor, expiresAt };
    case "unlimited":
      return { kind: "unlimited", expiresAt };
    case "blocked":
      return { kind: "blocked", expiresAt };
    default:
      return { ...(effect as ClientEffect), expiresAt };
  }
}

const MODES: readonly unknown[] = ["enforce", "shadow", "off"];

/**
 * Whether this version understands an override that the control object sent. During a deploy, another
 * version may have set it. Fields that this version does not know are allowed.
 *
 * This is no schema, because an isolate may load 10,000 overrides while a request waits.
 */
export function isUnderstood(given: unknown): given is Override {
  if (!isRecord(given)) return false;
  const { rule, client, effect, expiresAt } = given;
  if (typeof rule !== "string" || !Number.isFinite(expiresAt) || !isRecord(effect)) return false;
  if (client === undefined) return isRuleEffect(effect);
  return typeof client === "string" && isClientEffect(effect);
}

function isRuleEffect({ mode, factor }: Record<string, unknown>): boolean {
  if (mode === undefined && factor === undefined) return false;
  return (mode === undefined || MODES.includes(mode)) && (factor === undefined || isFactor(factor));
}

function isClientEffect({ kind, factor, limits }: Record<string, unknown>): boolean {
  if (kind === "factor") return isFactor(factor);
  if (kind === "limits") return isRecord(limits) && Object.values(limits).every(isLimit);
  return kind === "unlimited" || kind === "blocked";
}

function isFactor(value: unknown): boolean {
  return typeof value === "number" && value >= 0 && value <= MAX_FACTOR;
}

function isLimit(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_LIMIT;
}

/**
 * After this number of new overrides, those that have ended are removed. So an update costs little, and the
 * memory stays bounded even if nobody removes ended overrides.
 */
const PRUNE_INTERVAL = 1000;

/**
 * The overrides that this isolate has, and their effect on requests. An override ends by this isolate's
 * clock, without a new load.
 */
export class LiveOverrides {
  readonly #deploymentMode: DeploymentMode;
  readonly #onIgnored: () => void;
  readonly #rules = new Map<string, RuleChange>();
  readonly #clients = new ClientChanges();
  #version = 0;
  #setSincePruned = 0;

  /**
   * @param deploymentMode no override enforces a rule unless this is `enforce`
   * @param onIgnored called once for each update with overrides that this version does not understand.
   * They have no effect
   */
  constructor(deploymentMode: DeploymentMode = "enforce", onIgnored: () => void = () => {}) {
    this.#deploymentMode = deploymentMode;
    this.#onIgnored = onIgnored;
  }

  /** Whether overrides can change anything. With the mode `off`, no rule applies, so none is overridden. */
  get haveEffect(): boolean {
    return this.#deploymentMode !== "off";
  }

  /** The version of the newest change that this isolate has; 0 if it has loaded nothing. */
  get version(): number {
    return this.#version;
  }

  /** The number of overrides, including those that have ended and are not removed yet. */
  get size(): number {
    return this.#rules.size + this.#clients.size;
  }

  /**
   * Makes the changes of an answer.
   *
   * @param since the version that this isolate had when it asked. If another answer has arrived since, an
   * older answer changes nothing
   * @throws {Error} if the answer has another form. It changes nothing
   */
  update(update: OverrideUpdate, since = this.#version): void {
    const { version, isComplete, set, removed } = update;
    if (!Number.isInteger(version) || !Array.isArray(set) || !Array.isArray(removed)) {
      throw new Error("The answer has another form.");
    }
    const isOvertaken = since !== this.#version && version < this.#version;
    // An incomplete answer lacks the changes before `since`.
    const hasGap = !isComplete && since > this.#version;
    if (isOvertaken || hasGap) return;
    if (isComplete) {
      this.#rules.clear();
      this.#clients.clear();
    }
    for (const id of removed) this.#remove(id);
    const understood = set.filter((override) => this.#set(override));
    this.#version = version;
    if (understood.length < set.length) this.#onIgnored();
    this.#setSincePruned += set.length;
    if (this.#setSincePruned >= PRUNE_INTERVAL) this.#prune(Date.now());
  }

  /** Returns the matches with the overrides of their rules. Omits rules that are off. */
  matchesOf(matches: readonly RuleMatch[], now = Date.now()): readonly RuleMatch[] {
    if (this.#rules.size === 0) return matches;
    return changedItems(matches, (match) => {
      const rule = this.ruleOf(match.rule, now);
      return rule === match.rule ? match : rule && { ...match, rule };
    });
  }

  /** Returns the rule with its override, the same object each time; undefined if it is off. */
  ruleOf(rule: Rule, now = Date.now()): Rule | undefined {
    const change = this.#rules.get(rule.name);
    return !change || change.expiresAt <= now ? rule : change.changedRule(rule);
  }

  /** Returns the applied rules with the overrides of their clients. Omits rules without a limit. */
  clientsOf(appliedRules: readonly AppliedRule[], now = Date.now()): readonly AppliedRule[] {
    if (this.#clients.size === 0) return appliedRules;
    return changedItems(appliedRules, (appliedRule) => {
      const { later, rule } = appliedRule;
      if (!later) return this.#clients.changedRule(appliedRule, now);
      if (!this.#clients.hasRule(rule.name)) return appliedRule;
      const changed = later.then((identified) => this.clientsOf(identified));
      // The limiter reports the rejection of `later`, so this one is not unhandled.
      changed.catch(() => {});
      return { ...appliedRule, later: changed };
    });
  }

  /** @returns whether this version understands the override */
  #set(override: unknown): boolean {
    if (!isUnderstood(override)) {
      // The override that it replaces has ended.
      if (isRecord(override)) this.#remove(overrideId(override as { rule: string }));
      return false;
    }
    if (override.client !== undefined) {
      this.#clients.set(override);
      return true;
    }
    const { rule, effect, expiresAt } = override;
    this.#rules.set(rule, new RuleChange(effect, expiresAt, this.#deploymentMode));
    return true;
  }

  #remove(id: unknown): void {
    if (typeof id !== "string") return;
    // No name of a rule contains a colon: see `overrideId`.
    const [rule = "", client] = id.split(":", 2);
    if (client === undefined) this.#rules.delete(rule);
    else this.#clients.delete(rule, client);
  }

  #prune(now: number): void {
    this.#setSincePruned = 0;
    this.#clients.deleteEnded(now);
    for (const [rule, { expiresAt }] of this.#rules) {
      if (expiresAt <= now) this.#rules.delete(rule);
    }
  }
}

/**
 * Returns the items as `change` changes them, without those for which it returns undefined. If it changes
 * nothing, returns the given list, because most requests have no override.
 */
function changedItems<Item>(
  items: readonly Item[],
  change: (item: Item) => Item | undefined,
): readonly Item[] {
  let changed: Item[] | undefined;
  for (const [index, item] of items.entries()) {
    const result = change(item);
    if (result === item && !changed) continue;
    changed ??= items.slice(0, index);
    if (result !== undefined) changed.push(result);
  }
  return changed ?? items;
}
