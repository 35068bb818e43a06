import type { DeploymentMode } from "../config/deployment-mode.ts";
import { isRecord } from "../config/fields.ts";
import type { Rule } from "../config/rule.ts";
import type { RuleMatch } from "../request/matcher.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { ClientChanges } from "./client-changes.ts";
import { type OverrideUpdate, overrideId } from "./override.ts";
import { RuleChange } from "./rule-change.ts";
import { isUnderstood } from "./valid-override.ts";

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
