import type { DeploymentMode } from "../config/deployment-mode.ts";
import type { ControlApi } from "../control/protocol.ts";
import { LiveOverrides } from "../overrides/live-overrides.ts";
import { type Override, overrideId } from "../overrides/override.ts";
import { callControl } from "./control-calls.ts";

/** The overrides at this moment. */
export interface CurrentOverrides {
  /** Applies the overrides to rules and clients. */
  readonly live: LiveOverrides;
  /** The overrides by their ids: see `overrideId`. Empty if the control object does not answer. */
  readonly byId: ReadonlyMap<string, Override>;
}

/**
 * Reads the overrides from the control object, so that operators see their last change at once.
 *
 * @param ownCopy the overrides that this isolate has, which apply if the control object does not answer
 */
export async function currentOverrides(
  control: ControlApi | undefined,
  mode: DeploymentMode,
  ownCopy: LiveOverrides | undefined,
): Promise<CurrentOverrides> {
  const live = new LiveOverrides(mode);
  if (!control) return { live, byId: new Map() };
  try {
    const set = await callControl(control, (each) => each.overrides());
    live.update({ version: 1, isComplete: true, set, removed: [] });
    return { live, byId: new Map(set.map((each) => [overrideId(each), each])) };
  } catch {
    return { live: ownCopy ?? live, byId: new Map() };
  }
}
