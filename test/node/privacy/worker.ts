import type { ConfigInput } from "../../../src/config/index.ts";
import type { WorkerOptions } from "../support/worker.ts";
import { MARKERS } from "./clients.ts";

/** Returns the options of a Weir with a custom key and with its secrets. */
export function privacyWorker(
  config: ConfigInput,
  vars: Readonly<Record<string, string>>,
): WorkerOptions {
  return {
    config,
    custom: '{ keys: { tenant: (request) => request.headers.get("x-tenant") } }',
    vars: {
      INTERNAL: MARKERS["an exempt client's token"],
      JWT_SECRET: MARKERS["the JWT's secret"],
      ...vars,
    },
  };
}
