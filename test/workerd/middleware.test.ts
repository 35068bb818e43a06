import { Hono } from "hono";
import { cors } from "hono/cors";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import {
  type Quota,
  type RateLimitOptions,
  type RateLimitVariables,
  rateLimit,
} from "../../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const FIVE = { name: "five", limit: 5, window: "1h" } as const;

function appWith(
  rules: ConfigInput["rules"],
  options: RateLimitOptions = {},
  config: Omit<ConfigInput, "rules"> = {},
) {
  const app = new Hono();
  app.use(rateLimit(defineConfig({ store: "memory", ...config, rules }), options));
  app.get("/search", (c) => c.text("found"));
  app.post("/login", (c) => c.text("no", c.req.header("x-right") ? 200 : 401));
  app.get("/cost", (c) => c.text("worked", 200, { "x-cost": "3" }));
  app.get("/own", (c) => {
    c.header("RateLimit", '"app";r=9;t=1');
    c.header("Set-Cookie", "a=1", { append: true });
    c.header("Set-Cookie", "b=2", { append: true });
    return c.text("own", 201);
  });
  app.get("/fault", () => {
    throw new Error("a fault of the app's");
  });
  app.onError((_, c) => c.text("sorry", 500));
  return app;
}

describe("rateLimit", () => {
  it("lets the app respond within the limit, and adds the RateLimit fields", async () => {
    const app = appWith([FIVE]);
    const response = await app.request("/search");
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("found");
    expect(response.headers.get("content-type")).toBe("text/plain;charset=UTF-8");
    expect(response.headers.get("ratelimit-policy")).toBe('"five";q=5;w=3600');
    expect(response.headers.get("ratelimit")).toMatch(/^"five";r=4;t=\d+$/);
  });

  it.each([
    ["inside of an app that is mounted, without the prefix", "inside", undefined, "/users"],
    ["inside, with the whole path", "inside", { replaceRequest: false as const }, "/v2/users"],
    ["before the app that is mounted, with the whole path", "outside", undefined, "/v2/users"],
  ])("matches the path that it sees: %s", async (_, place, options, path) => {
    const app = new Hono();
    const inner = new Hono();
    const rules = ["/users", "/v2/users"].map((each, at) => ({
      ...{ name: `r${at}`, match: { paths: [each] } },
      ...{ limit: 5, window: "1h" as const },
    }));
    (place === "inside" ? inner : app).use(rateLimit({ store: "memory", rules }));
    inner.all("*", (c) => c.text("ok"));
    app.mount("/v2", inner.fetch, options);
    const { headers } = await app.request("https://a.example/v2/users");
    expect(headers.get("ratelimit-policy")).toBe(`"${path === "/users" ? "r0" : "r1"}";q=5;w=3600`);
  });

  it("denies a request over the limit in the same way as the gateway, and does not run the app", async () => {
    const app = appWith([{ ...FIVE, limit: 1 }]);
    const handled = vi.fn();
    app.get("/handled", handled);
    await app.request("/other");
    const response = await app.request("/handled", { headers: { origin: "https://page.example" } });
    expect(response.status).toBe(429);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(response.headers.get("access-control-allow-origin")).toBe("https://page.example");
    expect(await response.json()).toMatchObject({ "violated-policies": ["five"] });
    expect(handled).not.toHaveBeenCalled();
  });

  it("applies every rule that the request matches, and no other", async () => {
    const app = appWith([
      { ...FIVE, match: { paths: ["/search"] } },
      { ...FIVE, name: "posts", match: { methods: ["POST"] } },
    ]);
    expect((await app.request("/search")).headers.get("ratelimit")).toMatch(/^"five";r=4;t=\d+$/);
    expect((await app.request("/own")).headers.get("ratelimit-policy")).toBeNull();
  });

  it("applies only the rule in its options, regardless of the rule's match", async () => {
    const rules = [FIVE, { ...FIVE, name: "elsewhere", match: { paths: ["/elsewhere"] } }];
    const response = await appWith(rules, { rule: "elsewhere" }).request("/search");
    expect(response.headers.get("ratelimit-policy")).toBe('"elsewhere";q=5;w=3600');
  });

  it("keeps the app's own header fields, including RateLimit and repeated fields", async () => {
    const response = await appWith([FIVE]).request("/own");
    expect(response.status).toBe(201);
    expect(response.headers.get("ratelimit")).toMatch(/^"app";r=9;t=1, "five";r=4;t=\d+$/);
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  });

  it.each(["before", "after"])("lets pages read the fields if cors() runs %s it", async (when) => {
    const app = new Hono();
    const limit = rateLimit(defineConfig({ store: "memory", rules: [FIVE] }));
    const allow = cors({ origin: "https://page.example", exposeHeaders: ["X-Total"] });
    app.use(...(when === "before" ? [allow, limit] : [limit, allow]));
    app.get("/search", (c) => c.text("found"));
    const page = { headers: { origin: "https://page.example" } };
    const { headers } = await app.request("/search", page);
    expect(headers.get("access-control-allow-origin")).toBe("https://page.example");
    expect(headers.get("access-control-expose-headers")).toBe(
      "X-Total, RateLimit-Policy, RateLimit",
    );
  });

  it.each([
    ["a page that the app allows", "https://page.example", "https://page.example", "true"],
    ["no other page", "https://evil.example", null, "true"],
  ])("lets cors() decide who reads a denial: %s", async (_, origin, allowed, credentials) => {
    const app = new Hono();
    app.use(async (c, next) => {
      c.header("Cache-Control", "public, max-age=60");
      c.header("X-App", "1");
      await next();
    });
    app.use(cors({ origin: "https://page.example", credentials: true, exposeHeaders: ["X-App"] }));
    app.use(rateLimit(defineConfig({ store: "memory", rules: [{ ...FIVE, limit: 0 }] })));
    const { status, headers } = await app.request("/search", { headers: { origin } });
    expect(status).toBe(429);
    expect(headers.get("access-control-allow-origin")).toBe(allowed);
    expect(headers.get("access-control-allow-credentials")).toBe(credentials);
    const exposed = headers.get("access-control-expose-headers");
    expect(exposed).toMatch(
      allowed ? /^X-App, Retry-After, RateLimit-Policy, RateLimit, / : /^X-App$/,
    );
    expect(headers.get("cache-control")).toBe("no-store");
  });

  it("adds the fields to the responses of the app's onError and notFound", async () => {
    const app = appWith([FIVE]);
    for (const [path, status] of [
      ["/fault", 500],
      ["/nowhere", 404],
    ] as const) {
      const response = await app.request(path);
      expect(response.status).toBe(status);
      expect(response.headers.get("ratelimit-policy")).toBe('"five";q=5;w=3600');
    }
  });

  it("charges only the responses that the rule counts", async () => {
    const app = appWith([{ ...FIVE, limit: 2, count: { status: [401] } }]);
    const login = async (isCorrect: boolean) =>
      (
        await app.request("/login", {
          method: "POST",
          headers: isCorrect ? { "x-right": "1" } : {},
        })
      ).status;
    const statuses = [];
    for (const isCorrect of [true, true, true, false, false, true])
      statuses.push(await login(isCorrect));
    expect(statuses).toEqual([200, 200, 200, 401, 401, 429]);
  });

  it("charges the cost in the response", async () => {
    const response = await appWith([{ ...FIVE, cost: "header:x-cost" }]).request("/cost");
    expect(response.headers.get("ratelimit")).toMatch(/^"five";r=2;t=\d+$/);
  });

  it("charges a request whose handler throws a value that is no error", async () => {
    const app = appWith([{ ...FIVE, limit: 2, cost: "header:x-cost" }]);
    app.get("/text", () => {
      throw "a text";
    });
    // Hono's onError gets errors only.
    const seen = [];
    for (let sent = 0; sent < 3; sent++) {
      seen.push(await Promise.resolve(app.request("/text")).then((r) => r.status, String));
    }
    expect(seen).toEqual(["a text", "a text", 429]);
  });

  it("calls the functions for custom keys", async () => {
    const keys = { plan: (request: Request) => request.headers.get("x-plan") };
    const app = appWith([{ ...FIVE, key: "custom:plan", limit: 1 }], {}, { custom: { keys } });
    const statuses = [];
    for (const plan of ["a", "b", "a"]) {
      statuses.push((await app.request("/search", { headers: { "x-plan": plan } })).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
  });

  it("calls the app's functions once in each middleware that a request passes", async () => {
    const plan = vi.fn(() => "a");
    const byPlan = { ...FIVE, key: "custom:plan" };
    const rules = [byPlan, { ...byPlan, name: "other" }];
    const app = new Hono();
    const config = defineConfig({ store: "memory", rules, custom: { keys: { plan } } });
    for (let each = 0; each < 2; each++) app.use(rateLimit(config));
    await app.request("/");
    expect(plan).toHaveBeenCalledTimes(2);
  });

  it.each([
    ["open", 200],
    ["closed", 503],
  ] as const)(
    "handles an undecided request by the rule's onError: %s is %i",
    async (onError, status) => {
      vi.spyOn(console, "error").mockReturnValue();
      const response = await appWith([{ ...FIVE, onError }], {}, { store: "upstash" }).request(
        "/search",
      );
      expect(response.status).toBe(status);
      expect(response.headers.get("ratelimit")).toBeNull();
    },
  );

  it("throws for an unknown rule, and for a rule that reads a parameter of its paths", () => {
    const rule = (name: string) => () => appWith([FIVE, users], { rule: name });
    const users = { ...FIVE, name: "users", key: "param:id", match: { paths: ["/users/:id"] } };
    expect(rule("fife")).toThrow('no rule "fife" for rateLimit. The rules are: five, users.');
    expect(rule("users")).toThrow("reads a parameter of the paths in its match");
  });

  it.each([
    ["/admin/../search", ["admin", "search"]],
    ["/%61dmin/../search", ["admin", "search"]],
    ["/search", ["search"]],
  ])("applies the rules for the path by which Hono routes: %s", async (raw, names) => {
    // In a request that workerd receives, the URL is as the client sent it. `new Request` would
    // resolve it, so the test passes the unresolved path to Hono.
    const app = new Hono({ getPath: () => raw });
    const rules = ["admin", "search"].map((name) => ({
      ...FIVE,
      name,
      match: { paths: [`/${name}/*`] },
    }));
    app.use(rateLimit(defineConfig({ store: "memory", rules })));
    app.all("*", (c) => c.text("ok"));
    const response = await app.request("/search");
    const policies = response.headers.get("ratelimit-policy")?.match(/"[a-z]+"/g);
    expect(policies).toEqual(names.map((name) => `"${name}"`));
  });
});

describe("the key of a rule in an app", () => {
  const ROUTES = ["/api/:tenant/*", "/t/:tenant", "/:x/of/:tenant/*"];

  /**
   * Returns a function that sends a request whose URL workerd would pass on unresolved, and returns
   * the status, the tenant of the handler, and the quotas left.
   */
  function send(rule: object = {}) {
    const matched = { key: "param:tenant", match: { paths: ROUTES }, ...rule };
    const config = defineConfig({
      store: "memory",
      rules: [{ name: "tenant", limit: 2, window: "52w", ...matched }],
    });
    const limit = rateLimit(config);
    return async function sendTo(raw: string, address = "203.0.113.7") {
      let tenant: string | undefined;
      const app = new Hono({ getPath: () => decodedBy(raw) });
      app.use(limit);
      for (const route of ROUTES) {
        app.all(route, (c) => {
          tenant = c.req.param("tenant" as never);
          return c.text("ok");
        });
      }
      const url = new URL(raw, "https://api.example.com");
      const response = await app.request(url, { headers: { "cf-connecting-ip": address } });
      const left = [...(response.headers.get("ratelimit") ?? "").matchAll(/r=(\d+)/g)].map(
        digitsOf,
      );
      return { status: response.status, tenant, left };
    };
  }

  const digitsOf = ([, digits]: RegExpMatchArray) => Number(digits);

  /** Decodes a path like Hono's `getPath`. */
  function decodedBy(raw: string): string {
    const path = raw.replace(/[?#].*/, "");
    return path.includes("%") ? decodeURI(path.replaceAll("%25", "%2525")) : path;
  }

  it.each([
    "/api/acme/find/../../b/c",
    "/api/acme/../b/c",
    "/api/acme/%2e%2e/b/c",
    "/api/acme/find/.%2E/..//b/c",
    "/api/acme/x%2f..%2f..%2fb/c",
    "/api/acme/x%2f..%2f../b/c",
    "/api/acme/..%5cb/c",
    "/api/acme/..\\b/c",
    "/api/acme/x%252f..%252f..%252fb/c",
    "/api/acme//../b/c",
    "/api/acme/../../t/b",
    "/api/acme/;/../../b",
    "/api/acme/%00/../../b",
    "/api/a%63me/../b/c",
    "/api/ACME/../b/c",
    "/api/of/acme/../../b/c",
    "/x/of/acme/../../../api/b/c",
    "/x/of/acme/../b/c",
  ])("counts the handler's tenant, whatever a second reading is: %s", async (raw) => {
    const { tenant } = await send()(raw);
    expect(tenant).toBeDefined();
    const sendTo = send();
    for (const _ of "12") expect((await sendTo(`/t/${tenant?.toLowerCase()}`)).status).toBe(200);
    expect(await sendTo(raw, "198.51.100.1")).toMatchObject({ status: 429, tenant: undefined });
  });

  it.each([
    "/api/acme/find/../../b/c",
    "/api/acme/../b/c",
    "/api/acme/%2e%2e/b/c",
    "/api/acme/..\\b/c",
    "/x/of/acme/../../../api/b/c",
  ])("counts the tenant of the URL that the app would forward too: %s", async (raw) => {
    const sendTo = send();
    for (const _ of "12") await sendTo("/t/b");
    expect(await sendTo(raw)).toMatchObject({ status: 429, tenant: undefined });
  });

  it.each([
    ["/t/acme", [1]],
    ["/api/acme/x", [1]],
    ["/api/acme//x", [1]],
    ["/api/acme/../acme/x", [1]],
    ["/api/acme;v=1/x", [1]],
    ["/api/%61cme/a%2fb", [1]],
    ["/api/acme/../b/c", [1, 1]],
  ])("is charged once for each tenant: %s", async (raw, left) => {
    expect((await send()(raw)).left).toEqual(left);
  });

  it("has the tier of the handler's tenant", async () => {
    const tiers = { by: "param:tenant", limits: { acme: { limit: 1, window: "52w" } } };
    const sendTo = send({ key: "ip", tiers });
    expect(await sendTo("/t/acme")).toMatchObject({ status: 200 });
    expect(await sendTo("/api/acme/../b/c")).toMatchObject({ status: 429 });
    expect(await sendTo("/api/acme/x%2f..%2f..%2fb/c")).toMatchObject({ status: 429 });
  });

  it.each([
    [{ key: "ip" }, [1]],
    [{ key: "path" }, [1, 1]],
    [{ key: "path", match: {} }, [1, 1]],
    [{ key: "ip", match: {} }, [1]],
    [{ key: ["ip", "param:tenant"] }, [1, 1]],
    [
      { key: "global", tiers: { by: "param:tenant", limits: { b: { limit: 9, window: "52w" } } } },
      [1],
    ],
  ])("is charged once if it reads no value that differs: %j", async (rule, left) => {
    expect((await send(rule)("/api/acme/../b/c")).left).toEqual(left);
  });
});

describe("c.var.rateLimit", () => {
  /** Returns the value of `c.var.rateLimit` in a handler that runs after the middlewares. */
  async function quotasOf(
    rules: ConfigInput["rules"],
    config: Omit<ConfigInput, "rules"> = {},
    ...only: string[]
  ): Promise<readonly Quota[]> {
    const defined = defineConfig({ store: "memory", ...config, rules });
    const app = new Hono<{ Variables: RateLimitVariables }>();
    app.use(rateLimit(defined));
    for (const rule of only) app.use(rateLimit(defined, { rule }));
    app.get("/search", (c) => c.json(c.var.rateLimit));
    return (await app.request("/search")).json();
  }

  it("has the quotas of the decision while the app runs", async () => {
    const limits = [
      { limit: 5, window: "1m" },
      { limit: 9, window: "1h" },
    ];
    expect(await quotasOf([{ name: "api", limits }])).toMatchObject([
      { policy: "api/1m", limit: 5, windowMs: 60_000, remaining: 4, violated: false },
      { policy: "api/1h", limit: 9, windowMs: 3_600_000, remaining: 8, violated: false },
    ]);
  });

  it("has the quotas of all middlewares that decided the request, in their order", async () => {
    const rules = [FIVE, { ...FIVE, name: "other", match: { paths: ["/other"] } }];
    expect(await quotasOf(rules, {}, "other", "five")).toMatchObject([
      { policy: "five", remaining: 4 },
      { policy: "other", remaining: 4 },
      { policy: "five", remaining: 3 },
    ]);
  });

  it("has no quotas of rules in shadow mode", async () => {
    const rules = [FIVE, { ...FIVE, name: "trial", mode: "shadow" as const }];
    expect(await quotasOf(rules)).toMatchObject([{ policy: "five" }]);
  });

  it("is empty if no rule applies", async () => {
    expect(await quotasOf([{ ...FIVE, match: { paths: ["/other"] } }])).toEqual([]);
  });

  it("is empty if the request is undecided", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    expect(await quotasOf([FIVE], { store: "upstash" })).toEqual([]);
  });

  it("has the quotas before the response is charged", async () => {
    const rules = [{ ...FIVE, count: { status: [200] } }];
    expect(await quotasOf(rules)).toMatchObject([{ policy: "five", remaining: 5 }]);
  });

  it.each([
    ["an object", { limit: 10 }],
    ["a number", 7],
    ["a text", "gold"],
  ])("replaces a variable of this name that is %s", async (_, value) => {
    const app = new Hono<{ Variables: { rateLimit: unknown } }>();
    app.use(async (c, next) => {
      c.set("rateLimit", value);
      await next();
    });
    app.use(rateLimit(defineConfig({ store: "memory", rules: [FIVE] })));
    app.get("/search", (c) => c.json(c.var.rateLimit as Quota[]));
    const response = await app.request("/search");
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject([{ policy: "five", remaining: 4 }]);
  });

  it("is a copy, which other requests and the response do not share", async () => {
    const config = defineConfig({
      store: "memory",
      rules: [{ ...FIVE, match: { paths: ["/a"] } }],
    });
    const app = new Hono<{ Variables: { rateLimit: Quota[] } }>();
    app.use(rateLimit(config));
    app.get("/:path", (c) => {
      const count = c.var.rateLimit.length;
      c.var.rateLimit.pop();
      if (count === 0) c.var.rateLimit.push({ policy: "forged" } as Quota);
      return c.text(String(count));
    });
    const limited = await app.request("/a");
    expect(limited.headers.get("RateLimit")).toContain('"five";r=4');
    for (let request = 0; request < 2; request++) {
      expect(await (await app.request("/b")).text()).toBe("0");
    }
  });

  it("has its type in handlers after the middleware", async () => {
    const config = defineConfig({ store: "memory", rules: [FIVE] });
    const app = new Hono()
      .use(rateLimit(config))
      .get("/used", (c) => c.text(String(c.var.rateLimit[0]?.remaining)));
    app.get("/route", rateLimit(config), (c) => c.text(String(c.var.rateLimit[1]?.remaining)));
    expect(await (await app.request("/used")).text()).toBe("4");
    expect(await (await app.request("/route")).text()).toBe("2");
  });
});
