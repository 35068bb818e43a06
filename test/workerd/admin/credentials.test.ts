import { createExecutionContext, env } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import { type CounterObject, weir } from "../../../src/index.ts";
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
    // The answer to the last attempt does not wait for the store.
    await expect.poll(() => isOpen(other(RULES, { token: TOKEN }))).toBe(false);
    expect(await isOpen(other(RULES, { token: TOKEN, ip: "203.0.113.2" }))).toBe(true);
  });

  it("holds while the store fails", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const send = createWorker({ WEIR_ADMIN_TOKEN: TOKEN }, { store: "upstash" });
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(true);
    for (let i = 0; i < 5; i++) await send(RULES, wrong);
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(false);
  });

  describe("calls the store rarely", () => {
    /** Creates a Worker, and the list of its calls to the store. */
    function createCounted() {
      const calls: string[] = [];
      const COUNTERS = {
        getByName: (name: string) => ({
          run: (...given: Parameters<CounterObject["run"]>) => {
            calls.push(name);
            return env.COUNTERS.getByName(name).run(...given);
          },
        }),
      };
      const bindings = { WEIR_ADMIN_TOKEN: TOKEN, COUNTERS };
      return { send: createWorker(bindings, { store: "durable-object", rules: [] }), calls };
    }

    it.each([
      ["log-ins", "/_weir/login", form({ token: "wrong" })],
      ["tokens", RULES, wrong],
    ])("after wrong %s from many networks", async (_, path, attempt) => {
      const { send, calls } = createCounted();
      for (let i = 0; i < 60; i++) await send(path, { ...attempt, ip: `2001:db8:0:${i}::1` });
      expect(calls.length).toBeLessThanOrEqual(10);
      expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(true);
      const before = calls.length;
      vi.setSystemTime(Date.now() + 60_000);
      for (let i = 0; i < 60; i++) await send(path, { ...attempt, ip: `2001:db8:1:${i}::1` });
      expect(calls.length - before).toBeLessThanOrEqual(10);
    });

    it("once for each wrong log-in", async () => {
      const { send, calls } = createCounted();
      await send("/_weir/login", form({ token: "wrong" }));
      expect(calls).toHaveLength(1);
    });

    it("and still locks each address in this isolate", async () => {
      const { send } = createCounted();
      for (let i = 0; i < 60; i++) await send(RULES, { ...wrong, ip: `2001:db8:0:${i}::1` });
      const ip = "2001:db8:0:99::1";
      for (let i = 0; i < 5; i++) await send(RULES, { ...wrong, ip });
      expect(await isOpen(send(RULES, { token: TOKEN, ip }))).toBe(false);
    });
  });

  it("answers a wrong log-in like a right one if other isolates have locked the address", async () => {
    const bindings = { COUNTERS: env.COUNTERS, WEIR_ADMIN_TOKEN: TOKEN };
    const createIsolate = () => createWorker(bindings, { store: "durable-object" });
    const [one, other] = [createIsolate(), createIsolate()];
    for (let i = 0; i < 5; i++) await one(RULES, wrong);
    for (const token of [TOKEN, "wrong"]) {
      const response = await other("/_weir/login", form({ token }));
      expect(response.headers.get("location")).toBe("/_weir/login?fault=locked");
    }
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

  it("does not count sessions of an old token and forged ones, which nobody can guess", async () => {
    const send = createWorker();
    const rotated = createWorker({ WEIR_ADMIN_TOKEN: `${TOKEN}-new` });
    const old = await logIn(send);
    for (const cookie of [...Array(6).fill(old), ...Array(6).fill("__Secure-weir=admin.forged")]) {
      expect(await isOpen(rotated(RULES, { headers: { cookie } }))).toBe(false);
    }
    expect(await isOpen(rotated(RULES, { token: `${TOKEN}-new` }))).toBe(true);
  });

  it("does not count tokens of Access that are not valid", async () => {
    const access = {
      WEIR_ACCESS_TEAM: "https://team.cloudflareaccess.com",
      WEIR_ACCESS_AUD: "a".repeat(64),
    };
    const send = createWorker({ WEIR_ADMIN_TOKEN: TOKEN, ...access });
    const headers = { "cf-access-jwt-assertion": "forged" };
    for (let i = 0; i < 6; i++) expect(await isOpen(send(RULES, { headers }))).toBe(false);
    expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(true);
  });

  it.each(["cross-site", "same-site"])(
    "neither counts nor accepts a credential that a page of another site sends: %s",
    async (site) => {
      const send = createWorker();
      const headers = { "sec-fetch-site": site };
      const cookie = await logIn(send);
      for (let i = 0; i < 6; i++) {
        await send(RULES, { ...wrong, headers });
        await send("/_weir/login", form({ token: "wrong" }, headers));
      }
      expect(await isOpen(send(RULES, { token: TOKEN, headers }))).toBe(false);
      expect(await isOpen(send(RULES, { headers: { ...headers, cookie } }))).toBe(false);
      expect(await isOpen(send(RULES, { token: TOKEN }))).toBe(true);
    },
  );

  it("counts log-ins", async () => {
    const send = createWorker();
    for (let i = 0; i < 5; i++) {
      const response = await send("/_weir/login", form({ token: "wrong" }));
      const fault = i < 4 ? "wrong" : "locked";
      expect(response.headers.get("location")).toBe(`/_weir/login?fault=${fault}`);
    }
    const response = await send("/_weir/login", form({ token: TOKEN }));
    expect(response.headers.get("location")).toBe("/_weir/login?fault=locked");
    expect(response.headers.get("set-cookie")).toBeNull();
  });
});

describe("the app never gets a credential of Weir:", () => {
  /** Sends a request, and returns what the app gets; undefined if Weir answers. */
  async function appGets(
    headers: Record<string, string>,
    failed: number,
    path = RULES,
    mode?: string,
  ) {
    let received: Record<string, string> | undefined;
    const handler = weir(
      defineConfig({
        rules: [{ name: "all", limit: 99, window: "1h" }],
        store: "memory",
        timeoutMs: 10_000,
      }),
    );
    const send = (fields: Record<string, string>) => {
      const request = new Request(`${ORIGIN}${path}`, {
        method: "POST",
        body: "a body",
        headers: fields,
      });
      const bindings = { WEIR_ADMIN_TOKEN: TOKEN, ...(mode && { WEIR_MODE: mode }) };
      return handler.fetch(request, bindings, createExecutionContext(), async (admitted) => {
        received = { ...Object.fromEntries(admitted.headers), body: await admitted.text() };
        return new Response("app");
      });
    };
    for (let i = 0; i < failed; i++) await send({ authorization: "Bearer wrong" });
    received = undefined;
    await send({ "content-type": "text/plain", ...headers });
    return received;
  }

  const none = { "content-type": "text/plain", body: "a body" };

  it.each([
    "/x/..%2f_weir/api/rules",
    "/x%5c..%5c_weir/api/rules",
    "/x/..;/_weir/api/rules",
    "//_weir//api//rules",
    "/%5fweir/api/rules",
    "/%255fweir/api/rules",
    "/_%77eir",
    "/_weir%2fapi%2frules",
    "/_weir%3fx",
    "/_weir%00.css",
    "/_weir;x/api/rules",
    "/_WEIR/API/rules",
    "/_We%69R/api",
    "/%ef%bc%bfweir/api",
    "/_weir%20/api",
    "/;_weir/api",
    "/LONG/..%2f..%2f%5fweir/api",
  ])("the token or the session at %s", async (spelling) => {
    const path = spelling.replace("LONG", "a".repeat(4096));
    const cookie = await logIn(createWorker());
    for (const mode of [undefined, "shadow"]) {
      for (const sent of [
        { authorization: `Bearer ${TOKEN}` },
        { cookie: `a=b; ${cookie}` },
        { cookie: `a=b, ${cookie}`, authorization: `bearer ${TOKEN}` },
      ]) {
        const received = await appGets(sent, 0, path, mode);
        expect(JSON.stringify(received ?? {})).not.toMatch(/token-of-more|__Secure-weir/);
      }
    }
  });

  it.each([
    "Bearer x, Bearer TOKEN",
    "Basic abc, Bearer TOKEN",
    "Basic abc,bearer TOKEN",
    "BearerTOKEN",
  ])("the token in the field %s", async (field) => {
    const authorization = field.replace("TOKEN", TOKEN);
    expect(await appGets({ authorization }, 0)).toEqual(none);
  });

  it.each([
    ["SESSION, a=b", "a=b"],
    ["a=b, SESSION", "a=b"],
    ["a=b, SESSION; c=d", "a=b; c=d"],
    ["a=b; SESSION, c=d", "a=b; c=d"],
    ["a=1,2;SESSION,SESSION;c=3,4", "a=1,2;c=3,4"],
    ["SESSION, SESSION", undefined],
    ["a=b; __secure-weir =x", "a=b"],
  ])("the session of two Cookie fields: %s", async (text, kept) => {
    const cookie = text.replaceAll("SESSION", await logIn(createWorker()));
    const expected = { ...none, ...(kept !== undefined && { cookie: kept }) };
    expect(await appGets({ cookie }, 5)).toEqual(expected);
  });

  it.each([TOKEN, `${TOKEN}!`])("the token %s of a locked address", async (token) => {
    expect(await appGets({ authorization: `Bearer ${token}` }, 5)).toEqual(none);
  });

  it("the session of a locked address", async () => {
    const cookie = await logIn(createWorker());
    expect(await appGets({ cookie }, 5)).toEqual(none);
    const among = await appGets({ cookie: `a=b; ${cookie}; c=d` }, 5);
    expect(among).toEqual({ ...none, cookie: "a=b; c=d" });
  });

  it.each([TOKEN, `${TOKEN}!`])("the token %s from another site", async (token) => {
    const site = { "sec-fetch-site": "cross-site" };
    const received = await appGets({ authorization: `Bearer ${token}`, ...site }, 0);
    expect(received).toEqual({ ...none, ...site });
  });

  it("but it gets those of the site itself", async () => {
    const own = { authorization: "Basic abc", cookie: "session=1" };
    expect(await appGets(own, 5)).toEqual({ ...none, ...own });
    const bearer = { authorization: "Bearer abc", cookie: "a=1,2; b=%5f" };
    for (const path of [
      "/other",
      "/docs/_weir",
      "/a:b/_weir",
      "/_weirs",
      "/a%20b",
      "/?/_weir/api",
      "/%5fweirs",
    ]) {
      expect(await appGets(bearer, 0, path)).toEqual({ ...none, ...bearer });
    }
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

  it.each(["hangs", "fails"])("begins although the control object %s", async (how) => {
    const { promise: never } = Promise.withResolvers<never>();
    const addAuditEntry = () => (how === "hangs" ? never : Promise.reject(new Error("dead")));
    const WEIR_CONTROL = { getByName: () => ({ addAuditEntry }) };
    const send = createWorker({ WEIR_ADMIN_TOKEN: TOKEN, WEIR_CONTROL });
    expect(await logIn(send)).toContain("__Secure-weir=admin.");
  });

  it.each([
    ["multipart/form-data", "x"],
    ["application/x-www-form-urlencoded; charset=foo", "token=x"],
  ])("needs a form that can be read: %s gets 400", async (type, body) => {
    const request = form({}, { "content-type": type });
    const response = await createWorker()("/_weir/login", { ...request, body });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("The form could not be read");
  });

  it.each([
    [4096, 303],
    [4097, 413],
  ])("reads a form of at most 4 KiB: %i bytes get %i", async (size, status) => {
    const request = form({ token: "x".repeat(size - "token=".length) });
    const response = await createWorker()("/_weir/login", request);
    expect(response.status).toBe(status);
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
    const garbage = "__Secure-weir=x; ".repeat(40);
    const forged = `__Secure-weir=admin.9999999999999.${"a".repeat(36)}.${"b".repeat(43)}; `;
    const both = { cookie: `${garbage}${forged.repeat(8)}${cookie}` };
    expect(await isOpen(send(RULES, { headers: both }))).toBe(true);
  });

  it.each(["a=b, SESSION", "SESSION, a=b", "a=b; c=1,2, SESSION; d=e", "SESSION,SESSION"])(
    "is found in two Cookie fields: %s",
    async (text) => {
      const send = createWorker();
      const cookie = text.replaceAll("SESSION", await logIn(send));
      expect(await isOpen(send(RULES, { headers: { cookie } }))).toBe(true);
    },
  );

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
      [{ csrf }, { origin: "https://evil.example" }],
    ] as const) {
      const response = await send("/_weir/logout", form({ ...fields }, { cookie, ...headers }));
      expect([fields, headers, response.status]).toEqual([fields, headers, 403]);
    }
    for (const site of ["cross-site", "same-site"]) {
      const headers = { cookie, "sec-fetch-site": site };
      const response = await send("/_weir/logout", form({ csrf }, headers));
      expect(await response.text()).toBe(`app csrf=${csrf}`);
      expect(response.headers.has("set-cookie")).toBe(false);
    }
  });

  /** Returns the CSRF token of a session, as its pages contain it. */
  async function csrfOf(cookie: string): Promise<string> {
    const { createSessions } = await import("../../../src/admin/login.ts");
    const session = await createSessions([{ value: TOKEN, role: "admin" }]).read(
      cookie,
      Date.now(),
    );
    return session?.csrf ?? "";
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
