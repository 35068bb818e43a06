import { areTierNamesSecret } from "../config/tier-names.ts";
import type { ClientState } from "../limiter/clients.ts";
import { overrideId } from "../overrides/override.ts";
import { StoreError } from "../stores/store.ts";
import type { SelectedClient } from "./client-selector.ts";
import type { CurrentOverrides } from "./current-overrides.ts";
import { type ClientReport, OperationError } from "./operations.ts";

/** Returns a client's state as operators see it. */
export function reportOf(
  { rule, identity: client, countedBy }: SelectedClient,
  { quotas, tiers, banMs }: ClientState,
  { byId }: CurrentOverrides,
): ClientReport {
  const override = byId.get(overrideId({ rule: rule.name, client }));
  const ruleOverride = byId.get(overrideId({ rule: rule.name }));
  const isSecret = rule.tiers && areTierNamesSecret(rule.tiers.by);
  return {
    rule: rule.name,
    client,
    ...(countedBy !== undefined && { countedBy }),
    quotas,
    ...(tiers.size > 0 && {
      tiers: [...tiers].map(([tier, each], index) => ({
        tier: isSecret ? `#${index + 1}` : tier,
        quotas: each,
      })),
    }),
    banMs,
    ...(override && { override }),
    ...(ruleOverride && { ruleOverride }),
  };
}

/** Returns the state of a client for the audit list. */
export function auditStateOf({ quotas, banMs }: ClientReport) {
  return {
    quotas: quotas.map(({ policy, limit, remaining }) => ({ policy, limit, remaining })),
    banMs,
  };
}

/**
 * Calls the store.
 *
 * @throws {OperationError} ("unavailable") if the store fails
 */
export async function callStore<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new OperationError(
      "unavailable",
      `The store failed: ${error.failure}, ${error.message}. Run npx weir doctor.`,
    );
  }
}
