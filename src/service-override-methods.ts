import { WorkerEntrypoint } from "cloudflare:workers";
import type { Env } from "./config/env.ts";
import type { Config, ConfigInput, RuleNameOf } from "./config/schema.ts";
import type { Override } from "./overrides/override.ts";
import { configOfService } from "./service-config.ts";
import {
  listOverrides,
  type OverrideOptions,
  type RemoveOverrideOptions,
  removeOverride,
  setOverride,
} from "./service-overrides.ts";

/** The methods of `WeirService` that change what rules do. */
export abstract class OverrideService<
  C extends Config | ConfigInput = Config | ConfigInput,
> extends WorkerEntrypoint<Env> {
  /**
   * The configuration that `defineConfig` returned, or the argument of `defineConfig`. Such an
   * argument is checked at the first call that uses it. If it has faults, every call throws a
   * `ConfigError` that lists them. Instances of the class may have different configurations.
   */
  abstract readonly config: C;

  /**
   * Changes what a rule does, for one client or for all of them, until a time. The override holds in all
   * isolates within 15 seconds, and in this isolate at once. It replaces the override of the same rule
   * and client. Needs the binding `WEIR_CONTROL`.
   *
   * @example
   * await env.LIMITS.override("api", {
   *   key: { ip: "203.0.113.7" },
   *   effect: { kind: "factor", factor: 5 },
   *   expiresIn: "2h",
   *   reason: "A customer imports data",
   * });
   *
   * @param rule the name of a rule
   * @param options the client, the effect, the end and the reason
   * @returns the override
   * @throws {Error} if there is no binding, if there are 10,000 overrides, or if the control object fails
   */
  async override(rule: RuleNameOf<C>, options: OverrideOptions): Promise<Override> {
    return setOverride(configOfService(this), this.env, rule, options);
  }

  /**
   * Removes an override before it ends. Needs the binding `WEIR_CONTROL`.
   *
   * @example
   * await env.LIMITS.removeOverride("api", { key: { ip: "203.0.113.7" }, reason: "Import done" });
   *
   * @param rule the name of a rule. It may be missing in the configuration, if the override is still there
   * @param options the client, unless the override is for all clients, and the reason. Under a missing rule,
   *   name the client by its identity
   * @returns the removed override; undefined if there was none
   * @throws {Error} if there is no binding, or if the control object fails
   */
  async removeOverride(
    rule: RuleNameOf<C>,
    options: RemoveOverrideOptions,
  ): Promise<Override | undefined> {
    return removeOverride(configOfService(this), this.env, rule, options);
  }

  /**
   * Returns all overrides that have not ended, the newest first. Needs the binding `WEIR_CONTROL`.
   *
   * @throws {Error} if there is no binding, or if the control object fails
   */
  async overrides(): Promise<readonly Override[]> {
    return listOverrides(this.env);
  }
}
