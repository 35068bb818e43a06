import { startWorkerd, type Workerd, weirModule, workerConfig } from "../../../dev/workerd.ts";
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
 * Starts isolates that hand their sums over to one control object. Their app never answers requests to
 * `/…/slow` in time, and all others at once.
 *
 * @param broken a configuration for paths that begin with `/broken`, whose store cannot be reached
 */
export async function startIsolates(
  count: number,
  config: ConfigInput,
  broken: ConfigInput = config,
): Promise<Isolates> {
  const objects = { type: "durable-object", worker: "control" } as const;
  const env = {
    COUNTERS: { ...objects, exportName: "CounterObject" },
    WEIR_CONTROL: { ...objects, exportName: "FaultyControl" },
  };
  const weir = await weirModule();
  const isolates = Array.from({ length: count }, (_, index) => ({
    config: {
      ...workerConfig(`isolate-${index}`, {
        "main.mjs": isolateModule(config, broken),
        "weir.mjs": weir,
      }),
      env,
    },
  }));
  const storage = { type: "durable-object", storage: "sqlite" } as const;
  const control = {
    config: {
      ...workerConfig("control", { "main.mjs": CONTROL_MODULE, "weir.mjs": weir }),
      env,
      exports: { CounterObject: storage, FaultyControl: storage },
    },
  };
  const runtime: Workerd = await startWorkerd([control, ...isolates], { onLog: () => {} });
  const [controlUrl, ...urls] = runtime.urls as [URL, ...URL[]];
  const ask = async (path: string) => {
    const response = await fetch(new URL(path, controlUrl));
    return await response.json();
  };
  return {
    urls,
    setFaults: async (faults) => void (await ask(`/faults?set=${faults.join()}`)),
    faultsLeft: async () => (await ask("/faults")) as number,
    totals: async () => (await ask("/totals")) as Totals,
    stop: runtime.stop,
  };
}

function isolateModule(config: ConfigInput, broken: ConfigInput): string {
  return `
    import { defineConfig, weir, WeirService } from "./weir.mjs";
    const config = defineConfig(${JSON.stringify(config)});
    const limiter = weir(config);
    const broken = weir(defineConfig(${JSON.stringify(broken)}));
    export class Limits extends WeirService { config = config; }
    const UNREACHABLE = {
      UPSTASH_REDIS_REST_URL: "http://127.0.0.1:9",
      UPSTASH_REDIS_REST_TOKEN: "token",
    };
    let arrived = 0;
    export default {
      async fetch(request, env, ctx) {
        const { pathname } = new URL(request.url);
        if (pathname === "/arrived") return Response.json(arrived);
        if (pathname === "/call") return Response.json(await ctx.exports.Limits.limit("called"));
        if (pathname === "/check") return Response.json(await ctx.exports.Limits.check("called"));
        const next = async () => {
          arrived += 1;
          if (pathname.endsWith("/slow")) await scheduler.wait(20_000);
          return new Response("ok");
        };
        return pathname.startsWith("/broken")
          ? broken.fetch(request, { ...env, ...UNREACHABLE }, ctx, next)
          : limiter.fetch(request, env, ctx, next);
      },
    };
  `;
}

/** Module variables outlive an object that is killed. */
const CONTROL_MODULE = `
  import { ControlObject, CounterObject } from "./weir.mjs";
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
      if (fault === "slow") await scheduler.wait(4500);
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
