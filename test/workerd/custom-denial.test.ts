import { createExecutionContext } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import type {
  ConfigInput,
  CustomResponse,
  Denial,
  DenialContext,
  RuleInput,
} from "../../src/config/index.ts";
import { rateLimit, weir } from "../../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const ADDRESS = { "cf-connecting-ip": "203.0.113.7" };
const RULE: RuleInput = { name: "api", limit: 0, window: "1h", response: "custom:page" };

interface Options extends Omit<Partial<ConfigInput>, "rules"> {
  readonly rules?: readonly RuleInput[];
}

let handlers = 0;

/**
 * Creates a handler of rules that deny every request, and a list of the lines that it logs. The name of
 * the function is new, because an isolate logs the failures of each function at most once a second.
 */
function handler(create: CustomResponse, options: Options = {}) {
  const name = `page${handlers++}`;
  const { rules: given = [RULE], ...others } = options;
  const rules = given.map(
    (rule): RuleInput =>
      rule.response === "custom:page" ? { ...rule, response: `custom:${name}` } : rule,
  );
  const lines: unknown[] = [];
  vi.spyOn(console, "error").mockImplementation((line) => void lines.push(JSON.parse(line)));
  const custom = { responses: { [name]: create } };
  const { fetch } = weir({ store: "memory", ...others, rules, custom });
  const send = (init: RequestInit = {}, env: object = {}) => {
    const headers = { ...ADDRESS, ...(init.headers as Record<string, string>) };
    const request = new Request("https://api.example.com/", { ...init, headers });
    return fetch(request as never, env, createExecutionContext());
  };
  return { fetch, send, lines, name };
}

/** A function that returns a response of any kind, also one that the types refuse. */
const returning = (create: () => unknown): CustomResponse => create as CustomResponse;

describe("a function in custom.responses", () => {
  it("gets the denial, the request, the bindings and the context", async () => {
    const calls: [Denial, DenialContext][] = [];
    const rules: RuleInput[] = [
      { name: "free", limit: 100, window: "1m" },
      { ...RULE, limit: 1 },
      { ...RULE, name: "later", limit: 1, response: { body: "no" } },
    ];
    const env = { SITE: "a" };
    const { send } = handler(
      async (denial, context) => {
        calls.push([denial, context]);
        return new Response(await context.request.text(), { status: 429 });
      },
      { rules },
    );
    const origin = vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    await send({}, env);
    const response = await send({ method: "POST", body: "hello" }, env);
    expect(await response.text()).toBe("hello");
    expect(origin).toHaveBeenCalledTimes(1);
    const [[denial, context] = []] = calls;
    expect(denial).toMatchObject({
      rule: "api",
      violated: [{ policy: "api", limit: 1, remaining: 0, violated: true }, { policy: "later" }],
      quotas: [{ policy: "free", violated: false }, { policy: "api" }, { policy: "later" }],
    });
    expect(String(denial?.retryAfterSeconds)).toBe(response.headers.get("retry-after"));
    expect(Math.ceil((denial?.retryAfterMs ?? 0) / 1000)).toBe(denial?.retryAfterSeconds);
    expect(context?.env).toBe(env);
    expect(context?.ctx.waitUntil).toBeTypeOf("function");
    expect(context?.c).toBeUndefined();
  });

  it("gets Hono's context in the middleware, and the app does not run", async () => {
    const ran = vi.fn();
    const app = new Hono<{ Variables: { user: string } }>();
    app.use(async (c, next) => {
      c.set("user", "Ann");
      await next();
    });
    const page: CustomResponse = ({ rule }, { c }) =>
      c?.json({ rule, user: c.get("user") }, 429) as Response;
    app.use(rateLimit({ store: "memory", rules: [RULE], custom: { responses: { page } } }));
    app.get("/", ran);
    const response = await app.request("/", { headers: ADDRESS });
    expect([response.status, await response.json()]).toEqual([429, { rule: "api", user: "Ann" }]);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(ran).not.toHaveBeenCalled();
  });

  it("answers denials in front of next", async () => {
    const { fetch } = handler(() => new Response("no", { status: 420 }));
    const request = new Request("https://api.example.com/", { headers: ADDRESS });
    const next = vi.fn();
    const response = await fetch(request as never, {}, createExecutionContext(), next);
    expect([response.status, next.mock.calls.length]).toEqual([420, 0]);
  });

  it("runs for denials only, and not for a rule whose response is fixed or in shadow mode", async () => {
    const page = vi.fn(() => new Response("no", { status: 429 }));
    const { send } = handler(page, {
      rules: [
        { ...RULE, name: "shadow", mode: "shadow" },
        { ...RULE, name: "first", response: { status: 503 } },
        RULE,
      ],
    });
    vi.spyOn(console, "log").mockImplementation(() => {});
    expect((await send()).status).toBe(503);
    expect(page).not.toHaveBeenCalled();
  });

  it("runs if this isolate decides alone, but not for undecided requests", async () => {
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    const page = vi.fn(() => new Response("no", { status: 429 }));
    const broken = { store: "durable-object" } as const;
    const rule = { ...RULE, limit: 1 };
    const local = handler(page, { ...broken, rules: [{ ...rule, onError: "local" }] });
    await local.send();
    expect(await (await local.send()).text()).toBe("no");
    const closed = handler(page, { ...broken, rules: [{ ...rule, onError: "closed" }] });
    expect((await closed.send()).status).toBe(503);
    expect(page).toHaveBeenCalledTimes(1);
  });
});

describe("the fields of a response by a function", () => {
  const forged = {
    "Retry-After": "1",
    "Cache-Control": "public, max-age=60",
    "CDN-Cache-Control": "max-age=60",
    "Cloudflare-CDN-Cache-Control": "max-age=60",
    "Surrogate-Control": "max-age=60",
    "Edge-Control": "!no-store, max-age=60",
    "X-Accel-Expires": "60",
    ETag: '"denied"',
    "Last-Modified": "Thu, 01 Jan 2015 00:00:00 GMT",
    Expires: "Thu, 01 Jan 2099 00:00:00 GMT",
    Vary: "*",
    RateLimit: '"api";r=99;t=1',
    "RateLimit-Policy": '"api";q=99;w=1',
    "X-RateLimit-Limit": "99",
    "X-RateLimit-Reset": "1",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "*",
    "Access-Control-Expose-Headers": "X-Other",
    "Content-Language": "de",
  };

  it("are Weir's, except those that Weir does not set", async () => {
    const page = () => new Response("Langsam.", { status: 429, headers: forged });
    for (const headers of ["draft-11", "legacy", "both", "none"] as const) {
      const fixed: Options = { headers, rules: [{ ...RULE, response: { body: "" } }] };
      const asked = { headers: { Origin: "https://shop.example" } };
      const expected = new Headers((await handler(page, fixed).send(asked)).headers);
      const { headers: given } = await handler(page, { headers }).send(asked);
      for (const name of Object.keys(forged)) {
        if (/^(?:Content-Language|Vary|Access-Control-.*)$/.test(name)) continue;
        const numbers = (value: string | null) => value?.replace(/t=\d+|\d{4}/g, "");
        expect(numbers(given.get(name)), name).toBe(numbers(expected.get(name)));
      }
      expect(given.get("content-language")).toBe("de");
      expect(given.get("retry-after")).not.toBe("1");
      expect(given.get("cache-control")).toBe("no-store");
    }
  });

  const PAGE = "https://shop.example";
  const OWN = "https://own.example";
  const QUOTAS =
    "RateLimit-Policy, RateLimit, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset";
  const EXPOSED = `Retry-After, ${QUOTAS}`;

  it.each<[string, Record<string, string>, Record<string, string | undefined>]>([
    ["no field", {}, { "allow-origin": PAGE, "expose-headers": EXPOSED, vary: "Origin" }],
    ["Vary alone", { Vary: "Accept" }, { "allow-origin": PAGE, vary: "Accept, Origin" }],
    [
      "Vary with Origin",
      { Vary: "accept, origin" },
      { "allow-origin": PAGE, vary: "accept, origin" },
    ],
    ["one origin", { "Access-Control-Allow-Origin": OWN }, { "allow-origin": OWN }],
    [
      "one origin with credentials",
      {
        "Access-Control-Allow-Origin": OWN,
        "Access-Control-Allow-Credentials": "true",
        Vary: "Origin",
      },
      { "allow-origin": OWN, "allow-credentials": "true", vary: "Origin" },
    ],
    ["every origin", { "Access-Control-Allow-Origin": "*" }, { "allow-origin": "*" }],
    ["an empty origin", { "Access-Control-Allow-Origin": "" }, { "allow-origin": "" }],
    [
      "credentials without an origin, which is a refusal",
      { "Access-Control-Allow-Credentials": "true", Vary: "Origin" },
      { "allow-credentials": "true", vary: "Origin" },
    ],
    [
      "exposed fields alone",
      { "Access-Control-Expose-Headers": "X-Other, retry-after" },
      {
        "allow-origin": PAGE,
        "expose-headers": `X-Other, retry-after, ${QUOTAS}`,
        vary: "Origin",
      },
    ],
    [
      "all other fields",
      {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": "GET",
        "Access-Control-Allow-Headers": "X-Key",
        "Access-Control-Max-Age": "60",
        "Access-Control-Expose-Headers": "X-Other",
      },
      {
        "allow-origin": "*",
        "allow-methods": "GET",
        "allow-headers": "X-Key",
        "max-age": "60",
        "expose-headers": `X-Other, ${EXPOSED}`,
      },
    ],
  ])("decide which pages may read it, if it sets %s", async (_, own, expected) => {
    const page = () => new Response("no", { status: 429, headers: own });
    const { headers } = await handler(page).send({ headers: { Origin: PAGE } });
    const access = [...headers].filter(([name]) => /^access-control-|^vary$/.test(name));
    const given = Object.fromEntries(
      access.map(([name, value]) => [name.replace("access-control-", ""), value]),
    );
    const exposed = { "expose-headers": EXPOSED };
    const readable = expected["allow-origin"] === undefined ? {} : exposed;
    expect(given).toEqual({ ...readable, ...expected });
  });

  it("keep the function's fields although the request has no Origin", async () => {
    const own = { "Access-Control-Allow-Origin": "*", Vary: "Accept" };
    const page = () => new Response("no", { status: 429, headers: own });
    const { headers } = await handler(page).send();
    expect(Object.fromEntries(headers)).toMatchObject({
      "access-control-allow-origin": "*",
      vary: "Accept",
    });
  });

  it("cannot be changed through the arguments of the function", async () => {
    const page: CustomResponse = (denial) => {
      for (const quota of denial.quotas) Object.assign(quota, { remaining: 99, limit: 99 });
      Object.assign(denial, { retryAfterSeconds: 0, rule: "other" });
      return new Response("no", { status: 429 });
    };
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    const { send } = handler(page, { rules: [{ ...RULE, limit: 1 }] });
    await send();
    const { headers } = await send();
    expect(headers.get("ratelimit-policy")).toBe('"api";q=1;w=3600');
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("include repeated cookies, and keep the type of the body", async () => {
    const headers = new Headers([
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
    ]);
    const response = await handler(() => Response.json({ a: 1 }, { status: 429, headers })).send();
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toEqual({ a: 1 });
  });

  it("do not depend on the class of the response", async () => {
    const page = returning(() => ({
      status: 418,
      headers: new Headers({ "x-a": "1" }),
      body: new Response("tea").body,
    }));
    const response = await handler(page).send();
    expect([response.status, response.headers.get("x-a")]).toEqual([418, "1"]);
    expect(await response.text()).toBe("tea");
  });

  it.each([200, 400, 429, 499, 503, 599])("may have the status %d", async (status) => {
    const { send, lines } = handler(() => new Response("x", { status }));
    const response = await send();
    expect([response.status, await response.text()]).toEqual([status, "x"]);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(lines).toEqual([]);
  });

  it("have no body if the method is HEAD, even if the body never ends", async () => {
    const cancel = vi.fn();
    const body = new ReadableStream({ cancel });
    const response = await handler(() => new Response(body, { status: 429 })).send({
      method: "HEAD",
    });
    expect([response.status, response.body]).toEqual([429, null]);
    expect(cancel).toHaveBeenCalled();
  });
});

/** A body that sends its first part, and then runs `pull`. */
function bodyWith(pull: (controller: ReadableStreamDefaultController) => unknown): ReadableStream {
  let isFirst = true;
  return new ReadableStream({
    pull(controller) {
      if (!isFirst) return pull(controller) as undefined;
      isFirst = false;
      return controller.enqueue(new Uint8Array(10));
    },
  });
}

const used = () => {
  const response = new Response("x", { status: 429 });
  void response.text();
  return response;
};
const locked = () => {
  const response = new Response("x", { status: 429 });
  response.body?.getReader();
  return response;
};

describe("a function that fails is replaced by the default response", () => {
  it.each<[string, string, () => unknown]>([
    [
      "throws",
      "threw",
      () => {
        throw new Error("s3cret");
      },
    ],
    ["rejects", "threw", () => Promise.reject(new Error("s3cret"))],
    ["throws undefined", "threw", () => Promise.reject()],
    ["returns nothing", "invalid", () => undefined],
    ["returns null", "invalid", async () => null],
    ["returns a text", "invalid", () => "no"],
    ["returns an object", "invalid", () => ({ status: 429 })],
    ["returns an error response", "invalid", () => Response.error()],
    ["returns status 201", "invalid", () => new Response("", { status: 201 })],
    ["returns status 204", "invalid", () => new Response(null, { status: 204 })],
    ["returns status 206", "invalid", () => new Response("", { status: 206 })],
    ["redirects", "invalid", () => Response.redirect("https://example.com/captcha", 303)],
    ["returns status 399", "invalid", () => new Response("", { status: 399 })],
    ["returns a used response", "invalid", used],
    ["returns a locked response", "invalid", locked],
    [
      "upgrades to a WebSocket",
      "invalid",
      () => {
        const { 0: client, 1: server } = new WebSocketPair();
        server.accept();
        return new Response(null, { status: 101, webSocket: client });
      },
    ],
    [
      "returns a body that fails",
      "body-failed",
      () => new Response(bodyWith((controller) => controller.error(new Error("s3cret")))),
    ],
    [
      "returns a body that never ends",
      "too-long",
      () => new Response(bodyWith((controller) => controller.enqueue(new Uint8Array(65_536)))),
    ],
    ["returns a long body", "too-long", () => new Response(new Uint8Array(1024 * 1024 + 1))],
    [
      "returns a body of empty chunks without an end",
      "too-long",
      () => new Response(bodyWith((controller) => controller.enqueue(new Uint8Array(0)))),
    ],
    [
      "returns a header with a getter that throws",
      "threw",
      () => ({
        headers: {},
        get status() {
          throw new Error("s3cret");
        },
      }),
    ],
  ])("%s: %s", async (_, cause, create) => {
    const { send, lines, name } = handler(returning(create));
    const response = await send();
    expect(response.status).toBe(429);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(await response.json()).toMatchObject({ status: 429, "violated-policies": ["api"] });
    expect(lines).toEqual([{ weir: "custom-response-failed", response: name, cause }]);
  });

  it.each<[string, () => unknown]>([
    ["the function", () => new Promise(() => {})],
    ["the body", () => new Response(bodyWith(() => new Promise(() => {})))],
    ["the start of the body", () => new Response(new ReadableStream({}))],
  ])("stalls: %s", async (_, create) => {
    const { send, lines, name } = handler(returning(create), { timeoutMs: 20 });
    const response = await send();
    expect([response.status, response.headers.has("ratelimit")]).toEqual([429, true]);
    const failed = { weir: "custom-response-failed", response: name, cause: "timeout" };
    expect(lines).toEqual([failed]);
  });

  it("waits for a request's body that a client sends too slowly", async () => {
    const page: CustomResponse = async (_, { request }) =>
      new Response(await request.text(), { status: 400 });
    const { send, lines } = handler(page, { timeoutMs: 20 });
    const body = bodyWith(() => new Promise(() => {}));
    expect((await send({ method: "POST", body })).status).toBe(429);
    expect(lines).toHaveLength(1);
  });

  it("has the Retry-After that the function received", async () => {
    const told: unknown[] = [];
    const page = returning(() => undefined);
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    const rules: RuleInput[] = [{ ...RULE, limit: 1, retryJitter: "1h" }];
    const spied: CustomResponse = (denial, context) => {
      told.push(denial.retryAfterSeconds);
      return page(denial, context);
    };
    const { send } = handler(spied, { rules });
    await send();
    const response = await send();
    expect(response.headers.get("retry-after")).toBe(String(told[0]));
  });

  it("is logged at most once a second for each function", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    vi.setSystemTime(5_000_000_000_000);
    const { send, lines } = handler(returning(() => undefined));
    for (const atMs of [0, 999, 1000]) {
      vi.setSystemTime(5_000_000_000_000 + atMs);
      await send();
    }
    expect(lines).toHaveLength(2);
  });

  it("may have any length up to 1 MiB", async () => {
    const { send, lines } = handler(() => new Response(new Uint8Array(1024 * 1024)));
    expect((await (await send()).arrayBuffer()).byteLength).toBe(1024 * 1024);
    expect(lines).toEqual([]);
  });
});
