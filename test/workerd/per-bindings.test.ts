import { createExecutionContext, env } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import { bindingNames, resolveBindings } from "../../src/config/bindings.ts";
import { type Config, type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { createAdminEntry } from "../../src/entry/admin-entry.ts";
import { perBindings } from "../../src/entry/isolate.ts";
import { rateLimit, weir } from "../../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const RULES = [{ name: "api", limit: 2, window: "1h", key: "header:x-client" }] as const;

/** Creates functions that send a request with the given bindings, and return the field RateLimit. */
function programs(input: Omit<ConfigInput, "rules">) {
  const config = defineConfig({ ...input, rules: RULES });
  const { fetch } = weir(config);
  const app = new Hono().use(rateLimit(config));
  app.get("/", (c) => c.text("app"));
  const headers = { "x-client": crypto.randomUUID() };
  const request = () => new Request("https://api.example.com/", { headers });
  return {
    weir: async (bindings?: object) => {
      const ctx = createExecutionContext();
      const response = await fetch(request() as never, bindings, ctx, () => new Response());
      return response.headers.get("ratelimit");
    },
    rateLimit: async (bindings?: object) =>
      (await app.request(request(), undefined, bindings)).headers.get("ratelimit"),
  };
}

describe.each(["weir", "rateLimit"] as const)("%s", (program) => {
  it("works with bindings even if an earlier call had none", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const { [program]: send } = programs({ store: "durable-object" });
    expect(await send()).toBeNull();
    expect(await send({ COUNTERS: env.COUNTERS })).toContain("r=1");
    expect(await send()).toBeNull();
    expect(await send({ COUNTERS: env.COUNTERS })).toContain("r=0");
  });

  it("keeps its counters if each request has a new object of bindings", async () => {
    const { [program]: send } = programs({ store: "memory" });
    expect(await send({ requestId: 1 })).toContain("r=1");
    expect(await send({ requestId: 2 })).toContain("r=0");
  });

  it("logs faulty bindings once, even if each request has a new object of bindings", async () => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => {});
    const { [program]: send } = programs({ store: "upstash" });
    for (let sent = 0; sent < 3; sent++) await send({ UPSTASH_REDIS_REST_URL: "", sent });
    const faults = logged.mock.calls.filter(([line]) => String(line).includes("misconfigured"));
    expect(faults).toHaveLength(1);
  });
});

describe("perBindings", () => {
  const config = defineConfig({ rules: [] });

  it("keeps the values of the last 8 sets of bindings", () => {
    const create = vi.fn((bindings: object) => bindings);
    const valueFor = perBindings(config, create);
    const sets = Array.from({ length: 9 }, (_, index) => ({ WEIR_PREFIX: `p${index}` }));
    for (const set of sets) expect(valueFor(set)).toBe(set);
    for (const set of sets.slice(1)) expect(valueFor({ ...set })).toBe(set);
    expect(create).toHaveBeenCalledTimes(9);
    valueFor(sets[0]);
    expect(create).toHaveBeenCalledTimes(10);
  });

  it("reads no binding of the object that the last call passed", () => {
    const valueFor = perBindings(config, () => ({}));
    const read = vi.fn();
    const bindings = new Proxy({}, { get: (_, name) => void read(name) });
    valueFor(bindings);
    const reads = read.mock.calls.length;
    valueFor(bindings);
    expect(read).toHaveBeenCalledTimes(reads);
  });

  it.each<[string, Omit<ConfigInput, "rules">]>([
    ["the default", {}],
    ["Redis", { store: "upstash" }],
    [
      "bindings with names of the user",
      {
        origin: { binding: "APP" },
        nativeLimiter: { binding: "NATIVE" },
        usage: { binding: "USAGE" },
        jwt: { secret: "JWT_SECRET" },
      },
    ],
  ])("compares every binding that Weir reads: %s", (_, options) => {
    const secret = { ...RULES[0], exempt: { headers: { "x-a": { secret: "EXEMPT" } } } };
    const checked: Config = defineConfig({ ...options, rules: [secret] });
    const names = bindingNames(checked);
    const read = new Set<string | symbol>();
    const isText = (name: string | symbol) => /URL$|TOKEN$/.test(String(name));
    const text = "https://a.example.com/admin-token-of-32-characters";
    for (const texts of [isText, () => false]) {
      const bindings = new Proxy(
        {},
        {
          get(_, name) {
            read.add(name);
            return texts(name) ? `${text}-${String(name)}` : undefined;
          },
        },
      );
      resolveBindings(checked, bindings);
      createAdminEntry(checked, bindings);
    }
    expect(names).toEqual(expect.arrayContaining([...read]));
  });
});
