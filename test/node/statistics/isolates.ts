import { Miniflare } from "miniflare";
import { type Constants, isolatedWeirModule, workerConfig } from "../../../dev/workerd.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import type { Totals } from "../../../src/control/protocol.ts";

export type { Totals };

/** The effect on one call of an isolate to the control object. */
export type Fault =
  /** Throws an error and adds nothing. */
  | "refuse"
  /** Adds the sums, and then throws an error. */
  | "lose-answer"
  /** Adds the sums, and is then killed before it answers. */
  | "kill"
  /** Is killed, and adds nothing. */
  | "kill-first"
  /** Adds the sums, but answers after the caller has stopped waiting. */
  | "slow";

const CALL_TIMEOUT_MS = 400;

/** A tenth of the real intervals. */
const CONSTANTS: Constants = {
  "src/control/protocol.ts": { UPLOAD_INTERVAL_MS: 500 },
  "src/control/control-link.ts": {
    CALL_TIMEOUT_MS,
    STALE_MS: 1000,
    PAUSE_AFTER_FAILURE_MS: 500,
    MIN_DELAY_MS: 100,
    OVERDUE_MS: 200,
  },
  "src/control/statistics.ts": { WRITE_INTERVAL_MS: 100 },
};

export interface Isolates {
  /** The address of each isolate. */
  readonly urls: readonly URL[];
  /** Makes the control object treat the next uploads with sums like this. */
  setFaults(faults: readonly Fault[]): Promise<void>;
  /** The number of faults that have not occurred yet. */
  faultsLeft(): Promise<number>;
  totals(): Promise<Totals>;
  stop(): Promise<void>;
}

/**
 * Starts Weirs that share no state, as in isolates of their own, and that hand their sums over to one control object.
 * Their app never answers requests to `/…/slow` in time, and all others at once.
 *
 * @param broken a configuration for paths that begin with `/broken`, whose store cannot be reached
 */
export async function startIsolates(
  count: number,
  config: ConfigInput,
  broken: ConfigInput = config,
): Promise<Isolates> {
  const names = Array.from({ length: count }, (_, index) => `isolate${index}`);
  const objects = { type: "durable-object", worker: "weir" } as const;
  const storage = { type: "durable-object", storage: "sqlite" } as const;
  const runtime = new Miniflare({
    workers: [
      {
        config: {
          ...workerConfig("weir", {
            "main.mjs": mainModule(names, config, broken),
            "weir.mjs": await isolatedWeirModule(CONSTANTS),
          }),
          env: {
            COUNTERS: { ...objects, exportName: "CounterObject" },
            WEIR_CONTROL: { ...objects, exportName: "FaultyControl" },
          },
          exports: { CounterObject: storage, FaultyControl: storage },
        },
        dev: {
          unsafeDirectSockets: [{}, ...names.map((entrypoint) => ({ entrypoint }))],
          stripCfConnectingIp: false,
        },
      },
    ],
    handleStructuredLogs: () => {},
  });
  const controlUrl = await runtime.unsafeGetDirectURL("weir");
  const urls = await Promise.all(names.map((name) => runtime.unsafeGetDirectURL("weir", name)));
  const ask = async (path: string) => {
    const response = await fetch(new URL(path, controlUrl));
    return await response.json();
  };
  return {
    urls,
    setFaults: async (faults) => void (await ask(`/faults?set=${faults.join()}`)),
    faultsLeft: async () => (await ask("/faults")) as number,
    totals: async () => (await ask("/totals")) as Totals,
    stop: () => runtime.dispose(),
  };
}

function mainModule(names: readonly string[], config: ConfigInput, broken: ConfigInput): string {
  const isolates = names.map(
    (name) => `
      const weir_${name} = load(console);
      export class Limits_${name} extends weir_${name}.WeirService {
        config = limits_${name}.config;
      }
      const limits_${name} = start(weir_${name}, "Limits_${name}");
      export { limits_${name} as ${name} };
    `,
  );
  return `
    import { load } from "./weir.mjs";
    const { ControlObject, CounterObject } = load(console);
    const UNREACHABLE = {
      UPSTASH_REDIS_REST_URL: "http://127.0.0.1:9",
      UPSTASH_REDIS_REST_TOKEN: "token",
    };

    function start({ defineConfig, weir }, limits) {
      const config = defineConfig(${JSON.stringify(config)});
      const limiter = weir(config);
      const broken = weir(defineConfig(${JSON.stringify(broken)}));
      let arrived = 0;
      const fetch = async (request, env, ctx) => {
        const { pathname } = new URL(request.url);
        if (pathname === "/arrived") return Response.json(arrived);
        if (pathname === "/call") return Response.json(await ctx.exports[limits].limit("called"));
        if (pathname === "/check") return Response.json(await ctx.exports[limits].check("called"));
        const next = async () => {
          arrived += 1;
          if (pathname.endsWith("/slow")) await scheduler.wait(20_000);
          return new Response("ok");
        };
        return pathname.startsWith("/broken")
          ? broken.fetch(request, { ...env, ...UNREACHABLE }, ctx, next)
          : limiter.fetch(request, env, ctx, next);
      };
      return { config, fetch };
    }
    ${isolates.join("")}

    // This variable outlives an object that is killed.
    let faults = [];
    export { CounterObject };
    export class FaultyControl extends ControlObject {
      async upload(upload) {
        const fault = upload.minutes.length > 0 ? faults.shift() : undefined;
        if (fault === "kill-first") this.ctx.abort("killed");
        if (fault === "refuse") throw new Error("refused");
        const answer = await super.upload(upload);
        if (fault === "lose-answer") throw new Error("lost");
        if (fault === "kill") this.ctx.abort("killed");
        if (fault === "slow") await scheduler.wait(${2 * CALL_TIMEOUT_MS});
        return answer;
      }
    }
    export default {
      async fetch(request, env) {
        const { pathname, searchParams } = new URL(request.url);
        if (pathname === "/totals") {
          return Response.json(await env.WEIR_CONTROL.getByName("global").totals());
        }
        const set = searchParams.get("set");
        if (set !== null) faults = set.split(",");
        return Response.json(faults.length);
      },
    };
  `;
}
