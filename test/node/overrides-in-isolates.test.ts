import { Miniflare } from "miniflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { weirModule, workerConfig } from "../../dev/workerd.ts";
import { send } from "./support/client.ts";

/** An override must hold in every isolate within this time, in milliseconds. */
const HOLDS_WITHIN_MS = 15_000;
const ISOLATES = 8;
const NAMES = Array.from({ length: ISOLATES }, (_, index) => `weir-${index}`);

const CONFIG = {
  store: "memory",
  timeoutMs: 10_000,
  rules: [{ name: "api", limit: 2, window: "52w" }],
};

const MAIN = `
  import { ControlObject, defineConfig, WeirService, weir } from "./weir.mjs";
  const config = defineConfig(${JSON.stringify(CONFIG)});
  const limiter = weir(config);
  export class Limits extends WeirService { config = config; }
  /** Answers like the global object, like an object that has failed, or not at all. */
  export class Control extends ControlObject {
    static state = "up";
    async upload(...args) {
      if (Control.state === "hanging") await new Promise(() => {});
      if (Control.state === "throwing") throw new Error("broken");
      return super.upload(...args);
    }
    setState(state) { Control.state = state; }
  }
  export default {
    async fetch(request, env, ctx) {
      const { pathname } = new URL(request.url);
      const limits = new Limits(ctx, env);
      if (pathname.startsWith("/state/")) {
        await env.WEIR_CONTROL.getByName("global").setState(pathname.slice(7));
        return new Response();
      }
      if (pathname === "/override") {
        return Response.json(await limits.override("api", await request.json()));
      }
      if (pathname === "/remove") {
        return Response.json((await limits.removeOverride("api", await request.json())) ?? null);
      }
      return limiter.fetch(request, env, ctx, () => new Response("Hello"));
    },
  };
`;

let runtime: Miniflare;
let urls: URL[];
const logs: string[] = [];

beforeAll(async () => {
  const modules = { "main.mjs": MAIN, "weir.mjs": await weirModule() };
  const control = { type: "durable-object", worker: NAMES[0] as string, exportName: "Control" };
  runtime = new Miniflare({
    // Each Worker is an isolate of its own. The first one has the control object of all of them.
    workers: NAMES.map((name, index) => ({
      config: {
        ...workerConfig(name, modules),
        env: { WEIR_CONTROL: control as never },
        ...(index === 0 && {
          exports: { Control: { type: "durable-object" as const, storage: "sqlite" as const } },
        }),
      },
      dev: { unsafeDirectSockets: [{}], stripCfConnectingIp: false },
    })),
    handleStructuredLogs: ({ message }) => logs.push(message),
  });
  urls = await Promise.all(NAMES.map((name) => runtime.unsafeGetDirectURL(name)));
});

afterAll(() => runtime.dispose());

const statusAt = async (url: URL, ip: string) =>
  (await send(url, "/", { headers: { "CF-Connecting-IP": ip } })).status;

const post = (path: string, body: object) =>
  send(urls[0] as URL, path, { method: "POST", body: JSON.stringify(body) });

/**
 * Sends a request to every isolate again and again until all of them answer with a status.
 *
 * @returns how long that took in milliseconds
 */
async function untilAllAnswer(status: number, ip: string, among: readonly URL[]): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const statuses = await Promise.all(among.map((url) => statusAt(url, ip)));
    const tookMs = performance.now() - startedAt;
    if (statuses.every((each) => each === status) || tookMs > 2 * HOLDS_WITHIN_MS) return tookMs;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

const SOMEONE = "203.0.113.7";
const ABOUT = { key: SOMEONE, expiresIn: "1h", reason: "A test" };

describe("eight isolates", () => {
  it("hold an override and its removal within 15 seconds, idle ones included", async () => {
    const [first, idle, ...busy] = urls as [URL, URL, ...URL[]];
    const active = [first, ...busy];
    // Every isolate has loaded the overrides before.
    for (const url of urls) expect(await statusAt(url, SOMEONE)).toBe(200);
    const setAt = performance.now();
    await post("/override", { ...ABOUT, effect: { kind: "blocked" } });
    expect(await untilAllAnswer(429, SOMEONE, active)).toBeLessThan(HOLDS_WITHIN_MS);
    // The idle isolate gets no request during this time, so it loads the overrides before it decides.
    const restMs = HOLDS_WITHIN_MS - (performance.now() - setAt);
    await new Promise((resolve) => setTimeout(resolve, restMs));
    expect(await statusAt(idle, SOMEONE)).toBe(429);

    const unlimited = { ...ABOUT, effect: { kind: "unlimited" } };
    await post("/override", unlimited);
    expect(await untilAllAnswer(200, SOMEONE, urls)).toBeLessThan(HOLDS_WITHIN_MS);
    for (let sent = 0; sent < 4; sent++) {
      for (const url of urls) expect(await statusAt(url, SOMEONE)).toBe(200);
    }

    await post("/remove", { key: SOMEONE, reason: "Over" });
    expect(await untilAllAnswer(429, SOMEONE, urls)).toBeLessThan(HOLDS_WITHIN_MS);
  });

  it.each(["throwing", "hanging"])(
    "go on with their limits while the control object is %s, with the overrides that they have",
    async (state) => {
      const blocked = `203.0.113.${state.length}`;
      const other = `203.0.114.${state.length}`;
      await post("/override", { ...ABOUT, key: blocked, effect: { kind: "blocked" } });
      await untilAllAnswer(429, blocked, urls);
      await send(urls[0] as URL, `/state/${state}`);
      const until = performance.now() + 7000;
      const statuses = new Set<number>();
      while (performance.now() < until) {
        for (const url of urls) {
          expect(await statusAt(url, blocked)).toBe(429);
          statuses.add(await statusAt(url, other));
        }
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
      expect(statuses).toEqual(new Set([200, 429]));
      expect(logs.join("\n")).toContain('"weir":"control-failed"');
      await send(urls[0] as URL, "/state/up");
    },
  );
});
