import { createExecutionContext } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

let hours = 0;

/**
 * Moves the clock an hour past earlier tests, because an isolate logs outages at most once in ten
 * seconds.
 */
function anHourLater() {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ++hours * 3_600_000 });
}

/** Mocks `fetch`, with which a Worker on a route forwards requests to the zone's origin. */
function mockOrigin(respond: (request: Request) => Response | Promise<Response>) {
  return vi
    .spyOn(globalThis, "fetch")
    .mockImplementation(async (input, init) => respond(new Request(input, init)));
}

/** Sends a request to a new Worker with a configuration and bindings. */
function send(
  config: Omit<ConfigInput, "rules"> & Partial<Pick<ConfigInput, "rules">>,
  request: Request | string,
  env: Record<string, unknown> = {},
) {
  const rules = [{ name: "all", limit: 5, window: "1h" }];
  const worker = weir(defineConfig({ store: "memory", rules, ...config }));
  return worker.fetch(new Request(request) as never, env, createExecutionContext());
}

describe("the deployed Worker", () => {
  const login = (ip: string) =>
    exports.default.fetch("https://api.example.com/login", {
      method: "POST",
      headers: { "cf-connecting-ip": ip },
    });

  it("forwards five logins a minute to the zone's origin, and denies the sixth", async () => {
    // The clock is at the beginning of a minute, so that all six requests are in one window.
    vi.useFakeTimers({ toFake: ["Date"], now: Math.ceil(Date.now() / 60_000) * 60_000 });
    const origin = mockOrigin(() => new Response("welcome"));
    const statuses = [];
    for (let attempt = 1; attempt <= 6; attempt++)
      statuses.push((await login("203.0.113.1")).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    expect(origin).toHaveBeenCalledTimes(5);
    expect((await login("203.0.113.2")).status).toBe(200);
  });

  it("counts searches by API key, and searches of one address with many keys together", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Math.ceil(Date.now() / 60_000) * 60_000 });
    mockOrigin(() => new Response("found"));
    const limits = [];
    for (const key of ["one", "one", "two", "three"]) {
      const { headers } = await exports.default.fetch("https://api.example.com/search", {
        headers: { "cf-connecting-ip": "203.0.113.3", "x-api-key": key },
      });
      limits.push(headers.get("ratelimit")?.replace(/;t=\d+/g, ""));
    }
    expect(limits).toEqual([
      '"search/1m";r=59, "search/1h";r=999, "search-address";r=599',
      '"search/1m";r=58, "search/1h";r=998, "search-address";r=598',
      '"search/1m";r=59, "search/1h";r=999, "search-address";r=597',
      '"search/1m";r=59, "search/1h";r=999, "search-address";r=596',
    ]);
  });

  it("forwards a request that no rule matches, and returns the response unchanged", async () => {
    mockOrigin(() => new Response("hello", { headers: { "x-origin": "yes" } }));
    const response = await exports.default.fetch("https://api.example.com/about");
    expect(Object.fromEntries(response.headers)).toEqual({
      "content-type": "text/plain;charset=UTF-8",
      "x-origin": "yes",
    });
  });
});

describe("a Worker without an origin", () => {
  it.each(["localhost:8787", "127.0.0.1:8787", "[::1]:8787"])(
    "answers 502 and does not call itself endlessly, at %s",
    async (host) => {
      const fetch = mockOrigin(() => new Response());
      const response = await send({}, `http://${host}/`);
      expect(response.status).toBe(502);
      expect(await response.json()).toMatchObject({
        detail: "A local Worker has no origin. Set ORIGIN_URL, or start with npm run dev.",
      });
      expect(fetch).not.toHaveBeenCalled();
    },
  );

  it("answers 502 if ORIGIN_URL is not a URL, and logs the fault", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const response = await send({}, "https://x.example/", { ORIGIN_URL: "origin.example.com" });
    expect(response.status).toBe(502);
    expect(log.mock.calls.map(([line]) => JSON.parse(line))).toEqual([
      { weir: "misconfigured", fault: expect.stringContaining("ORIGIN_URL is not an absolute") },
    ]);
  });
});

describe("a Worker whose store is misconfigured", () => {
  const rules = (onError: "open" | "closed") => [
    { name: "all", limit: 5, window: "1h", onError } as const,
  ];

  it.each([
    ["open", 200],
    ["closed", 503],
  ] as const)("leaves requests undecided: %s is %i", async (onError, status) => {
    vi.spyOn(console, "error").mockReturnValue();
    mockOrigin(() => new Response());
    const config = { store: "upstash", rules: rules(onError) } as const;
    expect((await send(config, "https://x.example/")).status).toBe(status);
  });
});

describe("a request whose URL is invalid", () => {
  it.each([
    "*",
    "http://api.example.com#/x",
    "http://api.example.com?/x",
    "http://api.example.com\\x/x",
    "http://user@api.example.com/x",
    "http://a.example, b.example/x",
    "http://api.example.com:99999/x",
    "http://[::1/x",
  ])("gets 400, regardless of the rules' onError: %s", async (url) => {
    const origin = vi.spyOn(globalThis, "fetch");
    for (const onError of ["open", "closed"] as const) {
      const match = { paths: ["/x"] };
      const rules = [{ name: "all", match, limit: 5, window: "1h", onError }];
      const worker = weir(defineConfig({ store: "memory", rules }));
      const request = { url, method: "HEAD", headers: new Headers() } as never;
      const response = await worker.fetch(request, {}, createExecutionContext());
      expect(response.status).toBe(400);
    }
    expect(origin).not.toHaveBeenCalled();
  });
});

describe("the log", () => {
  it("has a line for each policy in shadow mode that would have denied a request", async () => {
    const log = vi.spyOn(console, "log").mockReturnValue();
    mockOrigin(() => new Response());
    const rules = [{ name: "trial", limit: 0, window: "1h", mode: "shadow" } as const];
    const request = new Request("https://x.example/", {
      headers: { "cf-connecting-ip": "203.0.113.7" },
    });
    const response = await send({ rules }, request);
    expect(response.status).toBe(200);
    expect([...response.headers.keys()].filter((name) => /ratelimit/.test(name))).toEqual([]);
    const lines = log.mock.calls.map(([line]) => JSON.parse(line));
    expect(lines).toMatchObject([{ weir: "denied", mode: "shadow", policy: "trial" }]);
  });

  it("has one line per ten seconds of an outage", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    mockOrigin(() => Promise.reject(Error("Network connection lost.")));
    anHourLater();
    const env = {
      UPSTASH_REDIS_REST_URL: "https://secret-name.upstash.io",
      UPSTASH_REDIS_REST_TOKEN: "secret-token",
    };
    const rules = [{ name: "all", limit: 5, window: "1h", onError: "closed" } as const];
    const sendInOutage = () => send({ store: "upstash", rules }, "https://x.example/", env);
    await sendInOutage();
    await sendInOutage();
    vi.advanceTimersByTime(9_999);
    await sendInOutage();
    expect(log.mock.calls).toEqual([
      ['{"weir":"undecided","cause":"unreachable","detail":"no connection","requests":"503"}'],
    ]);
    vi.advanceTimersByTime(1);
    await sendInOutage();
    expect(log).toHaveBeenCalledTimes(2);
  });
});
