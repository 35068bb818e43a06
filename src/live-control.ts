import { CONTROL_BINDING } from "./config/binding-names.ts";
import { readDeploymentMode } from "./config/deployment-mode.ts";
import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import { ControlLink } from "./control/control-link.ts";
import { GLOBAL_OBJECT } from "./control/fan-in.ts";
import type { ControlApi } from "./control/protocol.ts";
import { LiveOverrides } from "./overrides/live-overrides.ts";
import { Recorder } from "./statistics/recorder.ts";

/**
 * Creates an isolate's connection with the control object.
 *
 * @returns undefined if the Worker has no binding for it. Then there are no statistics and no overrides
 */
export function createControlLink(_config: Config, env: Env): ControlLink | undefined {
  const control = controlObject(env);
  return (
    control && new ControlLink(control, new LiveOverrides(readDeploymentMode(env)), new Recorder())
  );
}

/** Returns the global control object; undefined if the Worker has no binding for it. */
export function controlObject(env: Env): ControlApi | undefined {
  const namespace = env[CONTROL_BINDING] as DurableObjectNamespace | undefined;
  if (typeof namespace?.getByName !== "function") return undefined;
  return namespace.getByName(GLOBAL_OBJECT) as unknown as ControlApi;
}
