import type { AppliedRule } from "../request/rule-applier.ts";
import type { ClientEffect, ClientOverride } from "./override.ts";
import { emptyWindows, limitedWindows, scaledWindows } from "./override-windows.ts";
import { configuredWindows } from "./rule-change.ts";

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
