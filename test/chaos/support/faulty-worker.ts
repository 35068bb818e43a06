import { expect, vi } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { send } from "../../node/support/client.ts";
import { type RunningWorker, startWorker } from "../../node/support/worker.ts";
import { PATIENCE } from "../../patience.ts";

/**
 * A Worker whose Durable Objects fail as a test wants. Its time passes only when the test advances it, so no result
 * depends on the speed of the machine. Its answers have a field `x-took` with their milliseconds.
 */
export interface FaultyWorker extends RunningWorker {
  /** Makes every object fail in this way from now on. "none" repairs all objects. */
  misbehave(how: string): Promise<void>;
  /** Lets time pass in the Worker, and waits until the timers that are due have fired. */
  advance(ms: number): Promise<void>;
  /** Returns all log lines of the answers so far. Lines arrive shortly after the answers. */
  allLogs(): Promise<string[]>;
}

/** Starts a Worker with this configuration. */
export async function startFaultyWorker(
  config: ConfigInput,
  vars: Record<string, string>,
): Promise<FaultyWorker> {
  const worker = await startWorker({ config, vars, main: mainModule(config) });
  const chaos = (what: string, value: string | number) =>
    send(worker.url, `/chaos/${what}/${encodeURIComponent(value)}`);
  let marks = 0;
  return {
    ...worker,
    async misbehave(how) {
      await chaos("fault", how);
    },
    async advance(ms) {
      await chaos("advance", ms);
    },
    async allLogs() {
      marks += 1;
      await chaos("mark", marks);
      // The Worker writes the mark to both streams of its process, after all earlier lines.
      const marked = [`log: mark ${marks}`, `error: mark ${marks}`];
      await vi.waitFor(() => {
        expect(worker.logs()).toEqual(expect.arrayContaining(marked));
      }, PATIENCE);
      return worker.logs().filter((line) => !/^\w+: mark \d+$/.test(line));
    },
  };
}

/**
 * Durable Objects run in the Worker's isolate here, so a variable of the module can select their
 * fault.
 */
function mainModule(config: ConfigInput): string {
  return `
    import { CounterObject as Counters, defineConfig, weir } from "./weir.mjs";

    let fault = "none";
    const { now } = Date;
    let startedAt;
    let advancedMs = 0;
    Date.now = () => (startedAt ?? now()) + advancedMs;

    // Only the request that sets a timer may run its callback, so each timer looks at the time again and again.
    const { setTimeout: later, clearTimeout: cancel } = globalThis;
    const timers = new Set();
    function start(callback, ms, repeats) {
      const timer = { dueAt: Date.now() + ms };
      const check = () => {
        if (Date.now() >= timer.dueAt) {
          if (repeats) timer.dueAt += ms;
          else timers.delete(timer);
          callback();
        }
        if (timers.has(timer)) timer.check = later(check, 1);
      };
      timers.add(timer);
      timer.check = later(check, 1);
      return timer;
    }
    globalThis.setTimeout = (callback, ms = 0) => start(callback, ms, false);
    globalThis.setInterval = (callback, ms = 0) => start(callback, ms, true);
    globalThis.clearTimeout = globalThis.clearInterval = (timer) => {
      if (timers.delete(timer)) cancel(timer.check);
    };

    const handler = weir(defineConfig(${JSON.stringify(config)}));

    const CHAOS = {
      fault: (how) => { fault = how; },
      advance(ms) {
        advancedMs += Number(ms);
        // Until then, each timer has looked at the time.
        return new Promise((resolve) => later(resolve, 2));
      },
      mark(number) {
        console.log("mark " + number);
        console.error("mark " + number);
      },
    };

    const FAULTS = {
      none: (call) => call(),
      throw: () => { throw new Error("broken; cf-connecting-ip: 203.0.113.7"); },
      hang: () => scheduler.wait(60_000),
      slow: async (call) => { await scheduler.wait(60); return call(); },
      null: () => null,
      shape: () => [{ admitted: true }],
      "after it has counted": async (call) => { await call(); throw new Error("broken"); },
      abort: (call, ctx) => ctx.abort("restarted"),
      block: (call, ctx) => ctx.blockConcurrencyWhile(() => scheduler.wait(20_000)),
      storage: (call, ctx) => { ctx.storage.sql.exec("SELECT * FROM nothing"); },
    };

    export class CounterObject extends Counters {
      #ctx;
      constructor(ctx, env) {
        if (fault === "constructor") throw new Error("broken");
        super(ctx, env);
        this.#ctx = ctx;
      }
      run(...given) {
        return (FAULTS[fault] ?? FAULTS.none)(() => super.run(...given), this.#ctx);
      }
    }

    export default {
      async fetch(request, env, ctx) {
        startedAt ??= now();
        const [, chaos, what, value] = new URL(request.url).pathname.split("/");
        if (chaos === "chaos") return new Response(await CHAOS[what](decodeURIComponent(value)));
        const arrivedAt = Date.now();
        const answer = await handler.fetch(request, env, ctx);
        const response = new Response(answer.body, answer);
        response.headers.set("x-took", Date.now() - arrivedAt);
        return response;
      },
    };
  `;
}
