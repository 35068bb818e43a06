import { env } from "cloudflare:test";
import { afterEach, describe, expect, inject, it, vi } from "vitest";
import type { ConfigInput, RuleInput } from "../../../src/config/index.ts";
import type { StoredDenials } from "../../../src/control/protocol.ts";
import type { Entry } from "../../../src/stores/batch.ts";
import { FakeControl } from "./fake-control.ts";
import { createWorker, READ_TOKEN, TOKEN } from "./support.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const HOUR = 3_600_000;
const redis = inject("redis");

const STORES: Record<string, [Record<string, unknown>, Partial<ConfigInput>]> = {
  memory: [{}, { store: "memory" }],
  "durable-object": [{ COUNTERS: env.COUNTERS }, { store: "durable-object" }],
  upstash: [
    { UPSTASH_REDIS_REST_URL: redis.restUrl, UPSTASH_REDIS_REST_TOKEN: redis.restToken },
    { store: "upstash" },
  ],
};

const RULES: ConfigInput["rules"] = [
  {
    name: "all",
    limit: 2,
    window: "1h",
    key: "header:x-client | ip",
    ban: "1h",
  },
  {
    name: "pair",
    limits: [
      { limit: 3, window: "1m" },
      { limit: 9, window: "1h" },
    ],
    key: ["header:x-client | ip", "method"],
    match: { methods: ["POST"], paths: ["/pair"], except: { paths: ["/never"] } },
    tiers: { by: "header:x-plan", limits: { pro: { limit: 30, window: "1m" } } },
  },
  { name: "wide", limit: 100, window: "1h", shards: 8, key: "ip", match: { paths: ["/wide"] } },
  { name: "calls", limit: 5, window: "1h", for: "programs", key: "header:x-client" },
];

/** Sends requests with the admin token, and returns the JSON of the answers. */
function createApi(store = "memory", control?: FakeControl, config: Partial<ConfigInput> = {}) {
  const [bindings, options] = STORES[store] ?? [{}, {}];
  const send = createWorker(
    {
      ...bindings,
      WEIR_ADMIN_TOKEN: TOKEN,
      WEIR_ADMIN_READ_TOKEN: READ_TOKEN,
      WEIR_PREFIX: crypto.randomUUID().slice(0, 8),
      ...(control && { WEIR_CONTROL: control.binding }),
    },
    { rules: RULES, ...options, ...config },
  );
  // biome-ignore lint/suspicious/noExplicitAny: each test reads other fields of an answer
  async function call(method: string, path: string, body?: unknown, token = TOKEN): Promise<any> {
    const response = await send(`/_weir/api/${path}`, {
      method,
      token,
      headers: { "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const { status } = response;
    return {
      status,
      contentType: response.headers.get("content-type"),
      ...(await response.json<object>()),
    };
  }
  return { send, call };
}

describe("denials", () => {
  const denial = {
    ...{ id: 7, rule: "all", policy: "all", client: "x".repeat(22), mode: "enforce" },
    ...{ count: 3, firstAt: 1, lastAt: 2, retryAfterMs: 900, colo: "FRA" },
  } as StoredDenials;

  it("are those of all clients, or of a client by its identity or by values in the body", async () => {
    const control = new FakeControl();
    control.denied.push(denial);
    const { call } = createApi("memory", control);
    expect(await call("GET", "denials")).toMatchObject({ status: 200, denials: [denial] });
    expect(control.asked).toEqual({ clients: undefined, limit: 100 });
    const query = "since=2026-01-01T00:00:00Z&until=1767225660000&limit=5&before=9&rule=all";
    await call("GET", `denials?${query}&client=${denial.client}`, undefined, READ_TOKEN);
    const times = { since: 1_767_225_600_000, until: 1_767_225_660_000 };
    const asked = { ...times, rule: "all", limit: 5, before: 9 };
    expect(control.asked).toEqual({ ...asked, clients: [denial.client] });
    const known = { "header:x-client": "someone" };
    const { clients } = await call("POST", "peek", { known, rule: "all" });
    await call("POST", "denials?rule=all", { known });
    expect(control.asked?.clients).toEqual([clients[0].client]);
    // Each rule may have an identity of its own for the client.
    await call("POST", "denials", { known });
    expect(control.asked?.clients).toContain(clients[0].client);
  });

  it("of a rule that does not exist get 404, unless it was removed", async () => {
    const control = new FakeControl();
    const { call } = createApi("memory", control);
    expect(await call("GET", "denials?rule=former")).toMatchObject({ status: 404 });
    control.denied.push({ ...denial, rule: "former" });
    expect(await call("GET", "denials?rule=former")).toMatchObject({ status: 200 });
  });

  it.each([{}, { client: "203.0.113.7" }, { known: { ip: "x" }, client: "y" }, { rule: "all" }])(
    "of a faulty selector get 400: %j",
    async (body) => {
      const { call } = createApi("memory", new FakeControl());
      expect(await call("POST", "denials", body)).toMatchObject({ status: 400 });
    },
  );
});

describe("rules", () => {
  it("show limits, keys and matches, with the override of each rule", async () => {
    const control = new FakeControl();
    const { call } = createApi("memory", control);
    await call("PUT", "overrides", {
      rule: "all",
      effect: { factor: 3 },
      expiresIn: "2h",
      reason: "sale",
    });
    await call("PUT", "overrides", {
      rule: "wide",
      effect: { mode: "off" },
      expiresIn: "2h",
      reason: "x",
    });
    const { rules } = await call("GET", "rules");
    expect(rules[0]).toMatchObject({
      name: "all",
      key: "header:x-client | ip",
      mode: "enforce",
      configuredMode: "enforce",
      limits: [{ policy: "all", limit: 6, window: "1h" }],
      hasBan: true,
      match: "every request",
      override: { reason: "sale", by: "token" },
    });
    expect(rules[1]).toMatchObject({
      key: "header:x-client | ip, method",
      limits: [{ limit: 3, policy: "pair/1m" }, { limit: 9 }],
      hasTiers: true,
      match: "POST /pair with except",
    });
    expect(rules[2]).toMatchObject({ mode: "off", configuredMode: "enforce" });
    expect(rules[3].match).toBe("only calls of programs");
  });

  it("show under which rules a request may pass ahead", async () => {
    const [rule] = RULES;
    const { ban: _, ...fields } = rule as RuleInput;
    const reads = { ...fields, name: "reads", async: true };
    const { call } = createApi("memory", undefined, { rules: [fields, reads] as RuleInput[] });
    const { rules } = await call("GET", "rules");
    expect(rules.map(({ async }: RuleInput) => async)).toEqual([undefined, true]);
  });
});

describe.each(Object.keys(STORES))("a client in the store %s", (store) => {
  it("is found by each value that can have counted it", async () => {
    const { send, call } = createApi(store);
    const ip = "203.0.113.9";
    await send("/", { ip });
    await send("/", { ip, headers: { "x-client": "abc" } });
    await send("/", { ip, headers: { "x-client": "abc" } });
    const { clients } = await call("POST", "peek", {
      known: { ip, "header:X-Client": "abc" },
      rule: "all",
    });
    expect(clients).toMatchObject([
      { countedBy: "header:x-client", quotas: [{ remaining: 0, limit: 2 }], banMs: 0 },
      { countedBy: "ip", quotas: [{ remaining: 1, limit: 2 }] },
    ]);
    // Reading takes no quota.
    const again = await call("POST", "peek", { client: clients[1].client });
    expect(again.clients).toMatchObject([{ rule: "all", quotas: [{ remaining: 1 }] }]);
    expect((await call("POST", "peek", { client: "A".repeat(22) })).clients).toEqual([]);
  });

  it("is shown in all shards, windows and tiers", async () => {
    const { send, call } = createApi(store);
    const ip = "203.0.113.10";
    for (let i = 0; i < 5; i++) await send("/wide", { ip, headers: { "x-client": `${i}` } });
    const wide = await call("POST", "peek", { known: { ip }, rule: "wide" });
    expect(wide.clients[0].quotas).toMatchObject([{ limit: 100, remaining: 95 }]);
    await send("/pair", { method: "POST", ip, headers: { "x-plan": "pro" } });
    const known = { ip, method: "POST" };
    const pair = await call("POST", "peek", { known, rule: "pair" });
    expect(pair.clients).toMatchObject([
      {
        countedBy: "ip, method",
        quotas: [
          { policy: "pair/1m", remaining: 2 },
          { policy: "pair/1h", remaining: 9 },
        ],
        tiers: [{ tier: "pro", quotas: [{ limit: 30, remaining: 29 }] }],
      },
    ]);
  });

  it("is shown by the limits of each tier, with its override, as its next request is decided", async () => {
    const control = new FakeControl();
    const limits = { pro: { limit: 5, window: "1m", capacity: 30 } } as const;
    const tiers = { by: "header:x-plan", limits } as const;
    const rules = [
      { name: "saved", limit: 1, window: "1m", capacity: 4, key: "ip", tiers } as const,
    ];
    const { send, call } = createApi(store, control, { rules, clock: "edge" });
    vi.useFakeTimers({ toFake: ["Date"], now: Math.ceil(Date.now() / 3_600_000) * 3_600_000 });
    const ip = "203.0.113.20";
    const remainingFor = async (plan: string) => {
      const { rules } = await call("POST", "explain", {
        url: "https://api.example.com/",
        headers: { "cf-connecting-ip": ip, "x-plan": plan },
      });
      return rules[0].quotas[0].remaining;
    };
    const shown = async () => {
      const { clients } = await call("POST", "peek", { known: { ip }, rule: "saved" });
      const [{ quotas, tiers }] = clients;
      return [quotas[0].remaining, tiers[0].quotas[0].remaining];
    };
    for (let sent = 0; sent < 4; sent++) await send("/", { ip });
    vi.setSystemTime(Date.now() + 60_000);
    expect(await shown()).toEqual([1, 30]);
    expect([await remainingFor(""), await remainingFor("pro")]).toEqual([1, 30]);
    const effect = { kind: "factor", factor: 2 };
    const override = { rule: "saved", known: { ip }, effect, expiresIn: "1h", reason: "import" };
    expect((await call("PUT", "overrides", override)).status).toBe(200);
    expect(await shown()).toEqual([6, 60]);
    expect([await remainingFor(""), await remainingFor("pro")]).toEqual([6, 60]);
  });

  it("is reset, with an entry in the audit list", async () => {
    const control = new FakeControl();
    const { send, call } = createApi(store, control);
    const known = { "header:x-client": "reset" };
    const request = { headers: { "x-client": "reset" } };
    for (let i = 0; i < 3; i++) await send("/", request);
    expect((await send("/", request)).status).toBe(429);
    const { clients } = await call("POST", "reset", { known, rule: "all", why: "ticket 7" });
    expect(clients).toMatchObject([{ quotas: [{ remaining: 2 }], banMs: 0 }]);
    expect((await send("/", request)).status).toBe(200);
    expect((await call("GET", "audit")).entries).toMatchObject([
      {
        by: "token",
        action: "reset",
        rule: "all",
        client: clients[0].client,
        before: { quotas: [{ policy: "all", limit: 2, remaining: 0 }], banMs: expect.any(Number) },
        why: "ticket 7",
      },
    ]);
    // The entry comes before the change.
    expect(control.entries[0]).not.toHaveProperty("after");
  });

  it("keeps its counts when its ban is lifted", async () => {
    const control = new FakeControl();
    const { send, call } = createApi(store, control);
    const known = { "header:x-client": "ban" };
    for (let i = 0; i < 3; i++) await send("/", { headers: { "x-client": "ban" } });
    const before = await call("POST", "peek", { known, rule: "all" });
    expect(before.clients[0].banMs).toBeGreaterThan(HOUR - 60_000);
    const { clients } = await call("POST", "lift-ban", { known, rule: "all", why: "mistake" });
    expect(clients).toMatchObject([{ quotas: [{ remaining: 0, limit: 2 }], banMs: 0 }]);
    expect(control.entries[0]).toMatchObject({ action: "lift-ban", why: "mistake" });
  });
});

describe("an override", () => {
  it("is set for each identity of the known values, listed, shown, and removed", async () => {
    const control = new FakeControl();
    const { call } = createApi("memory", control);
    const known = { ip: "203.0.113.3", "header:x-client": "abc" };
    const { overrides, override, ...rest } = await call("PUT", "overrides", {
      rule: "all",
      known,
      effect: { kind: "limits", limits: { all: 50 } },
      expiresAt: new Date(Date.now() + HOUR).toISOString(),
      reason: "migration",
    });
    expect(rest).toEqual({ status: 200, contentType: "application/json" });
    expect(overrides).toHaveLength(2);
    expect(override).toEqual(overrides[0]);
    const { clients } = await call("POST", "peek", { known: { ip: known.ip }, rule: "all" });
    expect(clients).toMatchObject([{ quotas: [{ limit: 50 }], override: { reason: "migration" } }]);
    const id = `all:${clients[0].client}`;
    expect((await call("DELETE", "overrides", { id, why: "done" })).override).toEqual(overrides[1]);
    expect(await call("DELETE", "overrides", { id, why: "done" })).toMatchObject({
      status: 404,
      detail: `The rule all has no override for the client ${clients[0].client}.`,
    });
    expect(await call("DELETE", "overrides", { id: "all", why: "done" })).toMatchObject({
      status: 404,
      detail: "The rule all has no override for all clients.",
    });
    expect(await call("DELETE", "overrides", { id: "al", why: "done" })).toMatchObject({
      status: 404,
      detail: "The configuration has no rule of this name. The rules are: all, pair, wide, calls.",
    });
    expect((await call("GET", "overrides")).overrides).toHaveLength(1);
  });
});

describe("the override of a rule", () => {
  it("is in the reports of the rule's clients", async () => {
    const control = new FakeControl();
    const { call } = createApi("memory", control);
    const known = { ip: "203.0.113.3" };
    const before = await call("POST", "peek", { known, rule: "all" });
    expect(before.clients[0]).not.toHaveProperty("ruleOverride");
    const effect = { mode: "off" };
    await call("PUT", "overrides", { rule: "all", effect, expiresIn: "1h", reason: "incident" });
    const { clients } = await call("POST", "peek", { known, rule: "all" });
    expect(clients).toMatchObject([{ ruleOverride: { effect, reason: "incident" } }]);
    expect(clients[0]).not.toHaveProperty("override");
  });
});

describe("an explanation", () => {
  it("names the rules that apply and the conditions that do not hold, and takes no quota", async () => {
    const { call } = createApi();
    const url = "https://api.example.com/pair";
    const headers = { "cf-connecting-ip": "203.0.113.4" };
    for (let i = 0; i < 4; i++) {
      const { outcome, rules } = await call("POST", "explain", { method: "POST", url, headers });
      expect(outcome).toBe("allowed");
      expect(rules).toMatchObject([
        { rule: "all", applies: true, quotas: [{ remaining: 2 }], client: expect.any(String) },
        { rule: "pair", applies: true },
        {
          rule: "wide",
          applies: false,
          why: expect.stringContaining("The request does not fulfil match.paths: it has /pair,"),
        },
        { rule: "calls", applies: false, why: "It counts only calls of programs." },
      ]);
    }
    const { rules } = await call("POST", "explain", { url });
    expect(rules[1].why).toBe(
      "The request does not fulfil match.methods: it has GET, and the rule demands POST.",
    );
  });

  it("shows overrides, and a client that is over its limit", async () => {
    const control = new FakeControl();
    const { send, call } = createApi("memory", control);
    await send("/");
    await send("/");
    const described = { url: "https://a.example/", headers: { "cf-connecting-ip": "203.0.113.1" } };
    expect((await call("POST", "explain", described)).outcome).toBe("limited");
    const override = { rule: "all", effect: { mode: "off" }, expiresIn: "1h", reason: "x" };
    await call("PUT", "overrides", override);
    const off = await call("POST", "explain", described);
    expect(off).toMatchObject({ outcome: "unmatched" });
    expect(off.rules[0].why).toBe("An override has turned the rule off.");
  });
});

describe("a read-only token", () => {
  const why = "x";
  it.each([
    ["POST", "reset", { client: "A".repeat(22), rule: "all", why }],
    ["POST", "lift-ban", { client: "A".repeat(22), rule: "all", why }],
    ["PUT", "overrides", { rule: "all", effect: { factor: 2 }, expiresIn: "1h", reason: why }],
    ["DELETE", "overrides", { id: "all", why }],
  ])("gets 403 for a change: %s %s", async (method, path, body) => {
    const control = new FakeControl();
    const { call } = createApi("memory", control);
    expect(await call(method, path, body, READ_TOKEN)).toMatchObject({
      status: 403,
      contentType: "application/problem+json",
      detail: expect.stringContaining("WEIR_ADMIN_TOKEN"),
    });
    expect([control.entries, control.byId.size]).toEqual([[], 0]);
  });

  it("may read, also with POST", async () => {
    const { call } = createApi();
    const body = { url: "https://a.example/" };
    expect((await call("POST", "explain", body, READ_TOKEN)).status).toBe(200);
    const peek = await call("POST", "peek", { known: { ip: "203.0.113.1" } }, READ_TOKEN);
    expect(peek.status).toBe(200);
  });
});

describe("faulty input", () => {
  it.each([
    ["peek", {}, "", "not-allowed", "must have either client"],
    ["peek", { client: "x" }, "client", "not-allowed", "22 characters"],
    ["peek", { client: "A".repeat(22), known: { ip: "x" } }, "", "not-allowed", "either client"],
    ["peek", { known: { ip: "nonsense" } }, "known", "not-allowed", "an IP address"],
    ["peek", { known: { colour: "red" } }, "known", "not-allowed", "names as in a key"],
    [
      "peek",
      { known: { "jwt:sub": "a" } },
      "known",
      "not-allowed",
      "values for the whole key of a rule",
    ],
    [
      "peek",
      { known: JSON.parse('{ "__proto__": "x" }') },
      "known",
      "not-allowed",
      "at least one value",
    ],
    ["reset", { known: { ip: "203.0.113.1" }, rule: "all" }, "why", "missing", "is missing"],
    [
      "reset",
      { known: { ip: "203.0.113.1" }, rule: "all", why: " " },
      "why",
      "not-allowed",
      "1 to 500 characters",
    ],
    [
      "reset",
      { known: { ip: 7 }, rule: "all", why: "x" },
      "known.ip",
      "not-allowed",
      "must be a text",
    ],
    ["explain", { url: "ftp://a" }, "url", "not-allowed", "absolute URL"],
    ["explain", { url: "https://" }, "url", "not-allowed", "absolute URL"],
    [
      "explain",
      { url: "https://a", method: "A B" },
      "method",
      "not-allowed",
      "a method that Workers receive",
    ],
    [
      "explain",
      { url: "https://a", headers: { "a b": "c" } },
      "headers",
      "not-allowed",
      "valid names and values",
    ],
    ["explain", [], "", "not-allowed", "must be an object with the fields method, url"],
    ["explain", { url: "https://a", extra: 1 }, "extra", "unknown-field", "must be left out"],
  ])("gets 400 with what is allowed: %s %j", async (path, body, field, code, message) => {
    const answer = await createApi().call("POST", path, body);
    expect(answer).toMatchObject({ status: 400, contentType: "application/problem+json" });
    expect(answer.faults[0]).toEqual({
      path: field,
      code,
      message: expect.stringContaining(message),
    });
    expect(answer.detail).toContain(message);
    expect(answer.detail).not.toMatch(/nonsense|red/);
  });

  it.each([
    ["statistics?resolution=week", "resolution must be minute, hour or day"],
    ["statistics?from=yesterday", "from must be a time with its zone"],
    ["statistics?from=2026-01-01T00:00:00Z&until=2026-01-03T00:00:00Z", "at most 1 days"],
    ["statistics?from=2026-02-30T00:00:00Z", "from must be a time with its zone"],
    ["statistics?from=20&until=10", "from must be before until"],
    ["statistics?colour=red", "colour must be left out"],
    ["denials?limit=1001", "limit must be a whole number from 1 to 1000"],
    ["denials?before=0", "before must be"],
    ["denials?since=12:00", "since must be a time with its zone"],
    ["denials?client=203.0.113.7", "client must be an identity"],
    ["denials?ip=203.0.113.7", "ip must be left out"],
    ["audit?limit=501", "limit must be a whole number from 1 to 500"],
    ["audit?limit=-1", "limit must be"],
    ["audit?before=x", "before must be"],
  ])("of a query gets 400: %s", async (path, message) => {
    const answer = await createApi("memory", new FakeControl()).call("GET", path);
    expect(answer).toMatchObject({ status: 400, detail: expect.stringContaining(message) });
  });

  it("with many faults gets the first twenty, and the number of the others", async () => {
    const body = Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`other-${at}`, 1]));
    const { faults } = await createApi("memory", new FakeControl()).call("PUT", "overrides", body);
    expect(faults).toHaveLength(21);
    expect(faults[20].code).toBe("more-faults");
  });

  it.each([
    [{ rule: "none", effect: { factor: 2 }, expiresIn: "1h", reason: "x" }, "rule"],
    [{ rule: "all", effect: { kind: "unlimited" }, expiresIn: "1h", reason: "x" }, "effect"],
    [
      { rule: "all", client: 7, effect: { kind: "blocked" }, expiresIn: "1h", reason: "x" },
      "client",
    ],
    [{ rule: "all", effect: { factor: 2 }, expiresIn: "1h" }, "reason"],
    [null, ""],
  ])("of an override gets 400 with the path of the fault: %j", async (body, path) => {
    const control = new FakeControl();
    const answer = await createApi("memory", control).call("PUT", "overrides", body);
    expect(answer).toMatchObject({ status: 400 });
    expect(answer.faults.map((each: { path: string }) => each.path.split(".")[0])).toContain(path);
    expect(control.byId.size).toBe(0);
  });

  it("gets 404 for an unknown rule, 413 for a large body, and 415 for a form", async () => {
    const { send, call } = createApi();
    const known = { ip: "203.0.113.1" };
    expect(await call("POST", "peek", { known, rule: "pairs" })).toMatchObject({
      status: 404,
      detail: expect.stringContaining("The rules are: all, pair, wide, calls."),
    });
    expect((await call("POST", "peek", { known: { ip: "x".repeat(70_000) } })).status).toBe(413);
    const body = JSON.stringify({ known });
    expect((await send("/_weir/api/peek", { token: TOKEN, body })).status).toBe(415);
    const json = { token: TOKEN, headers: { "content-type": "application/json" } };
    expect((await send("/_weir/api/peek", { ...json, body: "{" })).status).toBe(400);
  });
});

describe("without a control object", () => {
  it.each(["statistics", "totals", "denials", "overrides", "audit"])(
    "the answer says what to add: %s",
    async (path) => {
      expect(await createApi().call("GET", path)).toMatchObject({
        status: 503,
        detail: expect.stringContaining("WEIR_CONTROL"),
      });
    },
  );

  it("a dead one gets 503, and clients can be read without it", async () => {
    const control = new FakeControl();
    control.isDead = true;
    const { call } = createApi("memory", control);
    for (const path of ["statistics", "totals", "denials", "overrides", "audit"]) {
      const answer = await call("GET", path);
      expect(answer).toMatchObject({
        status: 503,
        detail: expect.stringContaining("WEIR_CONTROL"),
      });
    }
    const known = { ip: "203.0.113.1" };
    expect((await call("POST", "peek", { known })).status).toBe(200);
    expect((await call("GET", "rules")).status).toBe(200);
    // Nothing changes without an entry in the audit list.
    expect(await call("POST", "reset", { known, rule: "all", why: "x" })).toMatchObject({
      status: 503,
      detail: expect.stringContaining("nothing was changed"),
      changed: false,
    });
  });

  it("an answer that is lost leaves open whether the change was made", async () => {
    class Lost extends FakeControl {
      override async setOverride(
        ...args: Parameters<FakeControl["setOverride"]>
      ): ReturnType<FakeControl["setOverride"]> {
        await super.setOverride(...args);
        throw new Error("lost");
      }
    }
    const control = new Lost();
    const { call } = createApi("memory", control);
    const override = { rule: "all", effect: { mode: "off" }, expiresIn: "1h", reason: "x" };
    const answer = await call("PUT", "overrides", override);
    expect(answer).toMatchObject({
      status: 503,
      detail: expect.stringContaining("It is not known whether the change was made"),
    });
    expect(answer).not.toHaveProperty("changed");
    expect(control.byId.size).toBe(1);
  });

  it("an entry of a reset that was not confirmed is followed by one that says so", async () => {
    class Late extends FakeControl {
      override async addAuditEntry(...args: Parameters<FakeControl["addAuditEntry"]>) {
        await super.addAuditEntry(...args);
        throw new Error("too late");
      }
    }
    const control = new Late();
    const { send, call } = createApi("memory", control);
    for (let i = 0; i < 3; i++) await send("/");
    const known = { ip: "203.0.113.1" };
    const { status } = await call("POST", "reset", { known, rule: "all", why: "x" });
    expect(status).toBe(503);
    expect(control.entries).toMatchObject([
      { action: "reset", why: expect.stringContaining("Not done") },
      { action: "reset", why: "x" },
    ]);
    expect((await send("/")).status).toBe(429);
  });

  it("a reset that the store does not make is followed by an entry that says so", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const control = new FakeControl();
    const COUNTERS = {
      getByName(name: string) {
        const object = env.COUNTERS.getByName(name);
        const run = async (entries: readonly Entry[]) => {
          if (entries.some(({ removed }) => removed.length > 0)) throw new Error("no store");
          return object.run(entries);
        };
        return { run };
      },
    };
    const send = createWorker(
      { COUNTERS, WEIR_ADMIN_TOKEN: TOKEN, WEIR_CONTROL: control.binding },
      { rules: RULES, store: "durable-object" },
    );
    const response = await send("/_weir/api/reset", {
      token: TOKEN,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ known: { ip: "203.0.113.9" }, rule: "all", why: "x" }),
    });
    expect(await response.json()).toMatchObject({
      status: 503,
      detail: expect.stringContaining("It is not known whether the change was made"),
    });
    expect(control.entries).toMatchObject([
      { action: "reset", why: expect.stringContaining("Failed: the store did not answer") },
      { action: "reset", why: "x" },
    ]);
  });

  it("statistics of an unknown rule are not found, unless there are sums of it", async () => {
    class Former extends FakeControl {
      override async statistics(...args: Parameters<FakeControl["statistics"]>) {
        return { ...(await super.statistics(...args)), rules: { former: {} } as never };
      }
    }
    const { call } = createApi("memory", new Former());
    expect(await call("GET", "statistics?rule=wid")).toMatchObject({
      status: 404,
      detail: expect.stringContaining("The rules are: all, pair, wide, calls."),
    });
    expect((await call("GET", "statistics?rule=former")).status).toBe(200);
    expect((await call("GET", "statistics?rule=wide")).status).toBe(200);
  });

  it("a store that fails gets 503", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const { call } = createApi("none", undefined, { store: "upstash" });
    expect(await call("POST", "peek", { known: { ip: "203.0.113.1" } })).toMatchObject({
      status: 503,
      detail: expect.stringContaining("UPSTASH_REDIS_REST_URL"),
    });
  });
});
