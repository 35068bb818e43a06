import { createExecutionContext, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineConfig } from "../../src/config/index.ts";
import { ControlObject, WeirService, weir } from "../../src/index.ts";
import { passTime, useVirtualTime } from "./stores/durable-object/objects-in-one.ts";

/** An override must hold in every isolate within this time, in milliseconds. */
const HOLDS_WITHIN_MS = 15_000;
const ISOLATES = 8;
/** The time between two requests to an isolate, in milliseconds. */
const STEP_MS = 250;

/** Answers like the global object, like an object that has failed, or not at all. */
class Control extends ControlObject {
  state: "up" | "throwing" | "hanging" = "up";

  override async upload(...args: Parameters<ControlObject["upload"]>) {
    if (this.state === "hanging") await new Promise(() => {});
    if (this.state === "throwing") throw new Error("broken");
    return super.upload(...args);
  }
}

/** Creates a Weir that shares nothing with others but the control object, as in an isolate of its own. */
function createIsolate(control: Control) {
  const bindings = { WEIR_CONTROL: { getByName: () => control } };
  const config = defineConfig({
    store: "memory",
    rules: [{ name: "api", limit: 2, window: "52w" }],
  });
  const limiter = weir(config);
  class Limits extends WeirService {
    readonly config = config;
  }
  return {
    service: new Limits(createExecutionContext(), bindings as never),
    async statusOf(ip: string) {
      const request = new Request("https://example.com/", { headers: { "CF-Connecting-IP": ip } });
      const next = () => new Response("Hello");
      const ctx = createExecutionContext();
      return (await limiter.fetch(request, bindings, ctx, next)).status;
    },
  };
}

type Isolate = ReturnType<typeof createIsolate>;

/** Runs a task with isolates that call one control object. Their calls take no virtual time. */
function withIsolates(
  task: (isolates: readonly [Isolate, ...Isolate[]], control: Control) => Promise<void>,
): Promise<void> {
  const stub = env.WEIR_CONTROL.getByName(crypto.randomUUID());
  return runInDurableObject(stub, async (_, state) => {
    const control = new Control(state, {});
    const isolates = Array.from({ length: ISOLATES }, () => createIsolate(control));
    await task(isolates as [Isolate, ...Isolate[]], control);
  });
}

/**
 * Sends a request to every isolate again and again until all of them answer with a status.
 *
 * @returns how long that took in milliseconds
 */
async function untilAllAnswer(
  status: number,
  ip: string,
  isolates: readonly Isolate[],
): Promise<number> {
  const startedAt = Date.now();
  for (;;) {
    const statuses: number[] = [];
    for (const isolate of isolates) statuses.push(await isolate.statusOf(ip));
    const tookMs = Date.now() - startedAt;
    if (statuses.every((each) => each === status) || tookMs > 2 * HOLDS_WITHIN_MS) return tookMs;
    await vi.advanceTimersByTimeAsync(STEP_MS);
  }
}

const SOMEONE = "203.0.113.7";
const ABOUT = { expiresIn: "1h", reason: "A test" } as const;

beforeEach(() => {
  useVirtualTime();
  vi.spyOn(console, "log").mockReturnValue();
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("eight isolates", () => {
  it("hold an override and its removal within 15 seconds, idle ones included", () =>
    withIsolates(async (isolates) => {
      const [{ service }, ...others] = isolates;
      const [idle, ...active] = others as [Isolate, ...Isolate[]];
      // Every isolate has loaded the overrides before.
      for (const each of isolates) expect(await each.statusOf(SOMEONE)).toBe(200);
      const key = { ip: SOMEONE };
      await service.override("api", { ...ABOUT, key, effect: { kind: "blocked" } });
      const tookMs = await untilAllAnswer(429, SOMEONE, active);
      expect(tookMs).toBeLessThan(HOLDS_WITHIN_MS);
      // Without a request, the isolates do not learn of it at once.
      expect(tookMs).toBeGreaterThan(0);
      // The idle isolate gets no request during this time, so it loads the overrides before it decides.
      await vi.advanceTimersByTimeAsync(HOLDS_WITHIN_MS - tookMs);
      expect(await idle.statusOf(SOMEONE)).toBe(429);

      await service.override("api", { ...ABOUT, key, effect: { kind: "unlimited" } });
      expect(await untilAllAnswer(200, SOMEONE, isolates)).toBeLessThan(HOLDS_WITHIN_MS);
      for (let sent = 0; sent < 4; sent++) {
        for (const each of isolates) expect(await each.statusOf(SOMEONE)).toBe(200);
      }

      await service.removeOverride("api", { key, reason: "Over" });
      expect(await untilAllAnswer(429, SOMEONE, isolates)).toBeLessThan(HOLDS_WITHIN_MS);
    }));

  it.each(["throwing", "hanging"] as const)(
    "go on with their limits while the control object is %s, with the overrides that they have",
    (state) =>
      withIsolates(async (isolates, control) => {
        const [{ service }] = isolates;
        const effect = { kind: "blocked" } as const;
        await service.override("api", { ...ABOUT, key: { ip: SOMEONE }, effect });
        await untilAllAnswer(429, SOMEONE, isolates);
        const errors = vi.spyOn(console, "error").mockReturnValue();
        control.state = state;
        const statuses = new Set<number>();
        const until = Date.now() + 20_000;
        while (Date.now() < until) {
          for (const each of isolates) {
            expect(await passTime(5, each.statusOf(SOMEONE))).toBe(429);
            statuses.add(await passTime(5, each.statusOf("203.0.113.8")));
          }
          await vi.advanceTimersByTimeAsync(1000);
        }
        expect(statuses).toEqual(new Set([200, 429]));
        expect(errors.mock.calls.join("\n")).toContain('"weir":"control-failed"');
      }),
  );
});
