import type { ResolvedBindings } from "../config/bindings.ts";
import type { CustomContext } from "../config/custom-functions.ts";
import type { Config } from "../config/schema.ts";
import type { ClientState } from "../limiter/clients.ts";
import type { Decision } from "../limiter/decision.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { Override } from "../overrides/override.ts";
import type { AppliedRule } from "../request/rule-applier.ts";

/** What an explanation needs. In Node, `read` can call `readClients` with a memory store. */
export interface ExplainContext {
  readonly config: Config;
  readonly bindings: Pick<ResolvedBindings, "keySecret" | "secrets" | "mode" | "prefix">;
  /**
   * Reads the states of clients, and charges nothing.
   *
   * @throws {StoreError} if the store fails
   */
  readonly read: (appliedRules: readonly AppliedRule[]) => Promise<readonly ClientState[]>;
  /**
   * Decides a request if the store fails, and charges nothing. If it is undefined, `explain` throws the
   * store's error.
   */
  readonly decide?: (appliedRules: readonly AppliedRule[]) => Promise<Decision>;
  /** The second argument of the functions in `custom`. */
  readonly custom: CustomContext;
  /** Returns this machine's time, in milliseconds since the Unix epoch. */
  readonly now?: () => number;
}

/** The overrides at the time of an explanation. */
export interface ExplainOverrides {
  /** Applies the overrides to rules and clients. */
  readonly live: LiveOverrides;
  /** The overrides by their ids: see `overrideId`. */
  readonly byId: ReadonlyMap<string, Override>;
}
