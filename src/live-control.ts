import { waitUntil } from "cloudflare:workers";
import { ANALYTICS_BINDING, CONTROL_BINDING } from "./config/binding-names.ts";
import { readDeploymentMode } from "./config/deployment-mode.ts";
import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import type { Batch } from "./control/control-calls.ts";
import { ControlLink } from "./control/control-link.ts";
import { GLOBAL_OBJECT } from "./control/fan-in.ts";
import type { ControlApi, HandOver } from "./control/protocol.ts";
import { logControlFailed } from "./log.ts";
import { LiveOverrides } from "./overrides/live-overrides.ts";
import { dataPointsOf } from "./statistics/data-points.ts";
import { Recorder } from "./statistics/recorder.ts";
import { inSpan } from "./stores/calls.ts";

/**
 * Creates an isolate's connection with the control object.
 *
 * @returns undefined if the Worker has no binding for it. Then there are no statistics and no overrides
 */
export function createControlLink({ timeoutMs }: Config, env: Env): ControlLink | undefined {
  const namespace = namespaceOf(env);
  if (!namespace) return undefined;
  const options = {
    objectNamed: (name: string) => {
      const object = namespace.getByName(name) as unknown as ControlApi;
      const handOver = (sums: HandOver) => inSpan("weir.hand-over", () => object.handOver(sums));
      return { handOver };
    },
    timeoutMs,
    background: waitUntil,
    onFailure: logControlFailed,
    onBatch: dataPointWriter(env),
  };
  const overrides = new LiveOverrides(readDeploymentMode(env), () =>
    logControlFailed("load-overrides", "unknown-override"),
  );
  return new ControlLink(options, overrides, new Recorder({ background: waitUntil }));
}

/**
 * Returns the global control object, which all requests of the isolate may call; undefined if the Worker
 * has no binding for it.
 */
export function controlObject(env: Env): ControlApi | undefined {
  const namespace = namespaceOf(env);
  if (!namespace) return undefined;
  type Methods = Record<string, (...args: readonly unknown[]) => unknown>;
  // The runtime lets only the request that creates a stub call it, so each call creates one.
  return new Proxy({} as ControlApi, {
    get:
      (_target, method: string) =>
      (...args: readonly unknown[]) =>
        (namespace.getByName(GLOBAL_OBJECT) as unknown as Methods)[method]?.(...args),
  });
}

/** @returns undefined if the Worker has no binding for a dataset */
function dataPointWriter(env: Env): ((batch: Batch) => void) | undefined {
  const dataset = env[ANALYTICS_BINDING] as AnalyticsEngineDataset | undefined;
  if (typeof dataset?.writeDataPoint !== "function") return undefined;
  return ({ minutes }) => {
    for (const point of dataPointsOf(minutes)) dataset.writeDataPoint(point);
  };
}

function namespaceOf(env: Env): DurableObjectNamespace | undefined {
  const namespace = env[CONTROL_BINDING] as DurableObjectNamespace | undefined;
  return typeof namespace?.getByName === "function" ? namespace : undefined;
}
