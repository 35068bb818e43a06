import { createExecutionContext, env } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import { weir } from "../../../src/index.ts";
import { createWorker, form, logIn, ORIGIN, READ_TOKEN, TOKEN } from "./support.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 0, 1) });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const RULES = "/_weir/api/rules";

async function isOpen(response: Response | Promise<Response>): Promise<boolean> {
  const { status, headers } = await response;
  return status === 200 && headers.get("content-type") === "application/json";
}

describe("a token", () => {
  it.each([TOKEN, READ_TOKEN])("opens the API: %s", async (token) => {
    expect(await isOpen(createWorker()(RULES, { token }))).toBe(true);
  });

  it.each([
    ["no credential", {}],
    ["another token", { token: `${TOKEN}2` }],
    ["an empty token", { token: "" }],
    ["another scheme", { headers: { authorization: `Basic ${btoa(`:${TOKEN}`)}` } }],
    ["a lower-case scheme", { headers: { authorization: `bearer ${TOKEN}` } }],
  ])("is needed: the app answers a request with %s, and reads the body", async (_, request) => {
    const response = await createWorker()(RULES, { ...request, method: "POST", body: "a\0b" });
    expect(await response.text()).toBe("app a\0b");
    expect(response.headers.get("content-security-policy")).toBeNull();
  });

  it("gets a 404 for an unknown path", async () => {
    const response = await createWorker()("/_weir/nothing", { token: TOKEN });
    expect(response.status).toBe(404);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
  });

  it.each([
    ["a short token", { WEIR_ADMIN_TOKEN: TOKEN.slice(0, 31) }, "WEIR_ADMIN_TOKEN has fewer than"],
    ["a token that no header can have", { WEIR_ADMIN_TOKEN: `${TOKEN} é` }, "WEIR_ADMIN_TOKEN has"],
    [
      "the same text twice",
      { WEIR_ADMIN_TOKEN: TOKEN, WEIR_ADMIN_READ_TOKEN: TOKEN },
      "WEIR_ADMIN_READ_TOKEN is the same text as WEIR_ADMIN_TOKEN",
    ],
    [
      "an Access team without an audience",
      { WEIR_ACCESS_TEAM: "https://team.cloudflareaccess.com" },
      "WEIR_ACCESS_AUD is not set although WEIR_ACCESS_TEAM is",
    ],
    [
      "an Access team of another host",
      { WEIR_ACCESS_TEAM: "https://team.example.com", WEIR_ACCESS_AUD: "a".repeat(64) },
      "WEIR_ACCESS_TEAM is not",
    ],
    [
      "an unknown role of Access",
      {
        WEIR_ACCESS_TEAM: "https://team.cloudflareaccess.com",
        WEIR_ACCESS_AUD: "a".repeat(64),
        WEIR_ACCESS_ROLE: "write",
      },
      "WEIR_ACCESS_ROLE is not admin or read",
    ],
  ])("opens nothing if the configuration is faulty: %s", async (_, bindings, fault) => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const send = createWorker(bindings);
    expect(await (await send(RULES, { token: TOKEN })).text()).toBe("app ");
    expect(await (await send("/_weir/login")).text()).toBe("app ");
    expect(log.mock.calls.flat().join()).toContain(fault);
    expect(log.mock.calls.flat().join()).not.toContain(TOKEN);
  });
});

describe("the limit of attempts", () => {
  const wrong = { token: `${TOKEN}!` };

  it("accepts no credential of an address after five failed attempts in a minute", async () => {
    const send = createWorker();
    for (let i = 0; i < 4; i++) await send(RULES, wrong);
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(true);
    await send(RULES, wrong);
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(false);
    expect(await isOpen(send(RULES, { token: TOKEN, ip: "203.0.113.2" }))).toBe(true);
    vi.setSystemTime(Date.now() + 60_000);
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(true);
  });

  it("counts an IPv6 network of 64 bits as one address", async () => {
    const send = createWorker();
    for (let i = 0; i < 5; i++) await send(RULES, { ...wrong, ip: `2001:db8::${i}` });
    expect(await isOpen(send(RULES, { token: TOKEN, ip: "2001:db8::ffff" }))).toBe(false);
    expect(await isOpen(send(RULES, { token: TOKEN, ip: "2001:db8:0:1::1" }))).toBe(true);
  });

  it("does not count requests without a credential, or with that of the site", async () => {
    const send = createWorker();
    for (let i = 0; i < 6; i++) {
      await send(RULES);
      await send(RULES, { headers: { authorization: "Basic abc", cookie: "a=b" } });
    }
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(true);
  });

  it("counts in the store for all isolates", async () => {
    const bindings = { COUNTERS: env.COUNTERS, WEIR_ADMIN_TOKEN: TOKEN };
    const createIsolate = () => createWorker(bindings, { store: "durable-object" });
    const [one, other] = [createIsolate(), createIsolate()];
    for (let i = 0; i < 5; i++) await one(RULES, wrong);
    expect(await isOpen(other(RULES, { token: TOKEN }))).toBe(false);
    expect(await isOpen(other(RULES, { token: TOKEN, ip: "203.0.113.2" }))).toBe(true);
  });

  it("holds while the store fails", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const send = createWorker({ WEIR_ADMIN_TOKEN: TOKEN }, { store: "upstash" });
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(true);
    for (let i = 0; i < 5; i++) await send(RULES, wrong);
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(false);
  });

  it("lets a request with a wrong credential continue at once, although the store hangs", async () => {
    const { promise: never } = Promise.withResolvers<never>();
    const bindings = {
      WEIR_ADMIN_TOKEN: TOKEN,
      COUNTERS: { getByName: () => ({ decide: () => never }) },
    };
    const rules = [
      { name: "other", match: { paths: ["/other"] }, limit: 1, window: "1m" },
    ] as const;
    const handler = weir(defineConfig({ rules, timeoutMs: 30_000, store: "durable-object" }));
    const request = new Request(`${ORIGIN}${RULES}`, {
      headers: { authorization: `Bearer ${wrong.token}` },
    });
    const ctx = createExecutionContext();
    const response = await handler.fetch(request, bindings, ctx, () => new Response("app"));
    expect(await response.text()).toBe("app");
  });

  it("counts log-ins and forged cookies", async () => {
    const send = createWorker();
    for (let i = 0; i < 4; i++) {
      const response = await send("/_weir/login", form({ token: "wrong" }));
      expect(response.headers.get("location")).toBe("/_weir/login?fault=wrong");
    }
    await send(RULES, { headers: { cookie: "__Secure-weir=admin.forged" } });
    const response = await send("/_weir/login", form({ token: TOKEN }));
    expect(response.headers.get("location")).toBe("/_weir/login?fault=locked");
    expect(response.headers.get("set-cookie")).toBeNull();
  });
});

describe("a session", () => {
  it("begins with a log-in, and has a cookie that scripts and other sites cannot use", async () => {
    const response = await createWorker()("/_weir/login", form({ token: TOKEN }));
    expect(response.status).toBe(303);
    expect(response.headers.get("location")).toBe("/_weir/");
    expect(response.headers.get("set-cookie")).toMatch(
      /^__Secure-weir=[^;]+; Path=\/_weir; HttpOnly; Secure; SameSite=Strict; Max-Age=43200$/,
    );
  });

  it("ends after 12 hours, and its end is no failed attempt", async () => {
    const send = createWorker();
    const cookie = await logIn(send);
    expect(await isOpen(send(RULES, { headers: { cookie } }))).toBe(true);
    vi.setSystemTime(Date.now() + 12 * 3_600_000 - 1);
    expect(await isOpen(send(RULES, { headers: { cookie } }))).toBe(true);
    vi.setSystemTime(Date.now() + 1);
    for (let i = 0; i < 6; i++)
      expect(await isOpen(send(RULES, { headers: { cookie } }))).toBe(false);
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(true);
  });

  it("ends if the token changes", async () => {
    const cookie = await logIn(createWorker());
    const rotated = createWorker({ WEIR_ADMIN_TOKEN: `${TOKEN}-new` });
    expect(await isOpen(rotated(RULES, { headers: { cookie } }))).toBe(false);
  });

  it("is found beside a cookie of the same name that another site has set", async () => {
    const send = createWorker();
    const cookie = await logIn(send);
    const both = { cookie: `__Secure-weir=x; ${cookie}` };
    expect(await isOpen(send(RULES, { headers: both }))).toBe(true);
  });

  it("can be ended by a form with the session's token, and by no other page", async () => {
    const send = createWorker();
    const cookie = await logIn(send);
    const csrf = await csrfOf(cookie);
    const ended = await send("/_weir/logout", form({ csrf }, { cookie }));
    expect(ended.headers.get("set-cookie")).toContain("Max-Age=0");
    for (const [fields, headers] of [
      [{}, {}],
      [{ csrf: `${csrf}a` }, {}],
      [{ csrf }, { origin: "null" }],
      [{ csrf }, { "sec-fetch-site": "cross-site" }],
      [{ csrf }, { "sec-fetch-site": "same-site" }],
      [{ csrf }, { origin: "https://evil.example" }],
    ] as const) {
      const response = await send("/_weir/logout", form({ ...fields }, { cookie, ...headers }));
      expect([fields, headers, response.status]).toEqual([fields, headers, 403]);
    }
  });

  /** The token of a session as its pages contain it. */
  async function csrfOf(cookie: string): Promise<string> {
    const { createSessions } = await import("../../../src/admin/session.ts");
    const session = await createSessions([{ value: TOKEN, role: "admin" }]).read(
      cookie,
      Date.now(),
    );
    return typeof session === "object" ? session.csrf : "";
  }

  it("does not begin by a form of another site", async () => {
    const response = await createWorker()(
      "/_weir/login",
      form({ token: TOKEN }, { origin: "https://evil.example", "sec-fetch-site": "cross-site" }),
    );
    expect(response.headers.get("location")).toBe("/_weir/login?fault=origin");
    expect(response.headers.get("set-cookie")).toBeNull();
  });
});

it("answers with header fields that keep other sites and caches away", async () => {
  const { headers } = await createWorker()(RULES, { token: TOKEN, headers: { origin: ORIGIN } });
  expect(Object.fromEntries(headers)).toMatchObject({
    "cache-control": "no-store",
    "content-security-policy": expect.stringContaining("default-src 'none'; script-src 'self'"),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  });
  expect(headers.has("access-control-allow-origin")).toBe(false);
});
