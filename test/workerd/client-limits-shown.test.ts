import { createExecutionContext } from "cloudflare:test";
import { sign } from "hono/jwt";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ReportedQuota } from "../../src/admin/operations.ts";
import {
  type ConfigInput,
  defineConfig,
  type LimitClient,
  type RuleInput,
} from "../../src/config/index.ts";
import { type LimitGranted, WeirService } from "../../src/index.ts";
import { FakeControl } from "./admin/fake-control.ts";
import { createWorker, TOKEN } from "./admin/support.ts";
import { explainRule } from "./explain/explaining.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const SOURCE = { from: "custom:quota", max: 1000, default: 100 } as const;
const CLAIM = { from: "jwt:/limits/rpm", max: 6000, default: 60 } as const;
const RULE: RuleInput = { name: "api", key: "header:x-api-key", limit: SOURCE, window: "1h" };
const SECRET = "a-secret-of-more-than-thirty-two-characters";
const JWT = { secret: "JWT_SECRET", alg: "HS256" } as const;

/** The clients' own numbers. All other clients have none. */
const NUMBERS: Readonly<Record<string, number>> = { big: 500, small: 3, none: 0, huge: 5000 };

function quotas(quota: (client: LimitClient) => unknown = ({ key }) => NUMBERS[key]) {
  vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(console, "error").mockImplementation(() => {});
  const asked = vi.fn((client: LimitClient) => quota(client) as number);
  return { asked, custom: { limits: { quota: asked } } };
}

async function bearer(claims: object) {
  const exp = Math.floor(Date.now() / 1000) + 600;
  return { authorization: `Bearer ${await sign({ ...claims, exp }, SECRET, "HS256")}` };
}

const fails = () => {
  throw new Error("secret");
};

describe("an explanation", () => {
  const explained = async (
    key: string | undefined,
    quota?: (client: LimitClient) => unknown,
    fields: object = {},
  ) => {
    const { custom } = quotas(quota);
    const headers = key === undefined ? {} : { "x-api-key": key };
    const described = { headers: { "cf-connecting-ip": "203.0.113.7", ...headers } };
    return explainRule({ ...RULE, ...fields } as RuleInput, described, { custom, timeoutMs: 50 });
  };

  it.each<[string, string | undefined, number, string, ((client: LimitClient) => unknown)?]>([
    ["the client's own number", "big", 500, "500 from custom:quota"],
    ["a limit of 0", "none", 0, "0 from custom:quota"],
    ["max, for a higher number", "huge", 1000, "1000 from custom:quota"],
    [
      "the default of an unknown client",
      "new",
      100,
      "100, the default of custom:quota, because it has none for the client",
    ],
    [
      "the default, if the function throws",
      "big",
      100,
      "100, the default of custom:quota, because the function threw an error",
      fails,
    ],
    [
      "the default, if the function is too slow",
      "big",
      100,
      "100, the default of custom:quota, because the function took too long",
      () => new Promise(() => {}),
    ],
    [
      "the default, if the function returns a text",
      "big",
      100,
      "100, the default of custom:quota, because its value is no whole number",
      () => "500",
    ],
    [
      "the default of a client without the key",
      undefined,
      100,
      "100, the default of custom:quota, because the function was not asked",
    ],
  ])("shows %s, and where it came from", async (_, key, limit, limitSource, quota) => {
    const rule = await explained(key, quota);
    expect(rule.limitSource).toBe(limitSource);
    expect(rule.quotas).toMatchObject([{ limit }]);
  });

  it.each([
    [{ limits: { rpm: 600 } }, 600, "600 from jwt:/limits/rpm"],
    [{ limits: { rpm: 0 } }, 0, "0 from jwt:/limits/rpm"],
    [{ limits: {} }, 60, "60, the default of jwt:/limits/rpm, because it has none for the client"],
    [
      { limits: { rpm: "many" } },
      60,
      "60, the default of jwt:/limits/rpm, because its value is no whole number",
    ],
    [undefined, 60, "60, the default of jwt:/limits/rpm, because there is no valid token"],
  ])("shows the number of a claim: %j", async (claims, limit, limitSource) => {
    const headers = claims ? await bearer(claims) : {};
    const env = { JWT_SECRET: SECRET };
    const rule = await explainRule({ limit: CLAIM, key: "ip" }, { headers }, { jwt: JWT }, env);
    expect(rule).toMatchObject({ limitSource, quotas: [{ limit }] });
  });

  it("still names the tier, and shows all sources of its limits", async () => {
    const pro = {
      limits: [
        { limit: SOURCE, window: "1m" },
        { limit: { ...SOURCE, max: 200 }, window: "1h" },
      ],
    } as const;
    const { custom } = quotas();
    const rule = await explainRule(
      { key: "header:x-api-key", tiers: { by: "header:x-plan", limits: { pro } } },
      { headers: { "x-api-key": "big", "x-plan": "pro" } },
      { custom },
    );
    expect(rule).toMatchObject({
      tier: "pro",
      limitSource: "500 from custom:quota; 200 from custom:quota",
      quotas: [{ limit: 500 }, { limit: 200 }],
    });
  });

  it("says nothing about sources if the client's limits have none", async () => {
    const tiers = { by: "header:x-plan", limits: { pro: { limit: SOURCE, window: "1m" } } };
    const rule = await explained("big", undefined, { limit: 7, tiers });
    expect(rule).not.toHaveProperty("limitSource");
  });
});

/** Creates a Worker with a control object. */
function createApi(
  config: Partial<ConfigInput>,
  control = new FakeControl(),
  bindings: object = {},
) {
  const send = createWorker(
    {
      WEIR_ADMIN_TOKEN: TOKEN,
      WEIR_PREFIX: crypto.randomUUID().slice(0, 8),
      WEIR_CONTROL: control.binding,
      JWT_SECRET: SECRET,
      ...bindings,
    },
    { rules: [RULE], ...config },
  );
  // biome-ignore lint/suspicious/noExplicitAny: each test reads other fields of an answer
  async function call(path: string, body?: object): Promise<any> {
    const json = { "content-type": "application/json" };
    const init = body && { headers: json, body: JSON.stringify(body) };
    return (await send(`/_weir/api/${path}`, { token: TOKEN, ...init })).json();
  }
  const get = (key: string, more: Record<string, string> = {}) =>
    send("/", { headers: { "x-api-key": key, ...more } });
  return { send, call, get, control };
}

/** A control object whose answers have the overrides, as the real one's. */
class OverridingControl extends FakeControl {
  override async upload() {
    const all = [...this.byId.values()];
    return { ...(await super.upload()), overrides: { version: 1, all } };
  }
}

function limitsOf(response: Response): number[] {
  const policies = response.headers.get("ratelimit-policy") ?? "";
  return [...policies.matchAll(/q=(\d+)/g)].map(([, limit]) => Number(limit));
}

const known = (key: string) => ({ known: { "header:x-api-key": key } });

describe("a look-up of a client", () => {
  it("asks the function with the values that the operator knows", async () => {
    const { asked, custom } = quotas();
    const { call } = createApi({ custom });
    const { clients } = await call("peek", known("big"));
    expect(clients).toMatchObject([
      { limitSource: "500 from custom:quota", quotas: [{ limit: 500, remaining: 500 }] },
    ]);
    expect(asked.mock.calls).toEqual([
      [{ key: "big", keys: ["big"], request: undefined }, expect.anything()],
    ]);
  });

  it("shares the numbers of the isolate with its requests", async () => {
    const { asked, custom } = quotas();
    const { call, get } = createApi({ custom });
    expect(limitsOf(await get("big"))).toEqual([500]);
    const { clients } = await call("peek", known("big"));
    expect(clients).toMatchObject([{ quotas: [{ limit: 500, remaining: 499 }] }]);
    const [{ client }] = clients;
    expect(await call("peek", { client })).toMatchObject({
      clients: [{ limitSource: "500 from custom:quota", quotas: [{ limit: 500 }] }],
    });
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it("says that the number of an identity is unknown, unless this isolate knows it", async () => {
    const { asked, custom } = quotas();
    const { call, send } = createApi({ custom });
    const page = `/_weir/clients?client=${"A".repeat(22)}&rule=api`;
    expect(await (await send(page, { token: TOKEN })).text()).toContain(
      "the limit is unknown here",
    );
    expect(await call("peek", { client: "A".repeat(22), rule: "api" })).toMatchObject({
      clients: [
        {
          limitSource:
            "unknown here: the function is asked only if you look the client up by the values of its key",
          quotas: [{ limit: 100, isUnknown: true }],
        },
      ],
    });
    expect(asked).not.toHaveBeenCalled();
  });

  it("says which limits of an identity are unknown beside an override of the others", async () => {
    const { custom } = quotas();
    const control = new OverridingControl();
    const limits = [
      { limit: SOURCE, window: "1m" },
      { limit: CLAIM, window: "1h" },
    ] as const;
    const rule = { name: "api", key: "header:x-api-key", limits } as const;
    const { call } = createApi({ rules: [rule], custom, jwt: JWT }, control);
    const client = "A".repeat(22);
    const effect = { kind: "limits", limits: { "api/1m": 50 } };
    const about = { expiresAt: Date.now() + 3_600_000, reason: "A sale" };
    await control.setOverride({ rule: "api", client, effect, ...about } as never, "token");
    const [{ quotas: shown }] = (await call("peek", { client, rule: "api" })).clients;
    expect(shown.map(({ limit, isUnknown }: ReportedQuota) => [limit, isUnknown === true])).toEqual(
      [
        [50, false],
        [60, true],
      ],
    );
  });

  it("shows the default for the address of a client without the key", async () => {
    const { asked, custom } = quotas();
    const { call } = createApi({ custom });
    const { clients } = await call("peek", { known: { ip: "203.0.113.1" }, rule: "api" });
    expect(clients).toMatchObject([{ countedBy: "ip", quotas: [{ limit: 100 }] }]);
    expect(asked).not.toHaveBeenCalled();
  });

  it("shows the default if the function fails, without its error", async () => {
    const { custom } = quotas(fails);
    const { call } = createApi({ custom });
    expect(await call("peek", known("big"))).toMatchObject({
      clients: [
        {
          limitSource: "100, the default of custom:quota, because the function threw an error",
          quotas: [{ limit: 100 }],
        },
      ],
    });
  });

  it("says that a number in a token is unknown, because no look-up has the token", async () => {
    const { call, send } = createApi({ rules: [{ ...RULE, key: "ip", limit: CLAIM }], jwt: JWT });
    const headers = await bearer({ limits: { rpm: 600 } });
    expect(limitsOf(await send("/", { headers }))).toEqual([600]);
    expect(await call("peek", { known: { ip: "203.0.113.1" } })).toMatchObject({
      clients: [
        {
          limitSource:
            "unknown here: it is in the client's token, with which weir explain shows it",
          quotas: [{ limit: 60, isUnknown: true }],
        },
      ],
    });
  });

  it("shows the client's number in each tier", async () => {
    const tiers = {
      by: "header:x-plan",
      limits: { pro: { limit: SOURCE, window: "1h" } },
    } as const;
    const { custom } = quotas();
    const { call } = createApi({ rules: [{ ...RULE, limit: 7, tiers }], custom });
    expect(await call("peek", known("big"))).toMatchObject({
      clients: [
        {
          limitSource: "500 from custom:quota",
          quotas: [{ limit: 7 }],
          tiers: [{ tier: "pro", quotas: [{ limit: 500 }] }],
        },
      ],
    });
  });

  it("resets a client by its number", async () => {
    const { custom } = quotas();
    const { call, get } = createApi({ custom });
    for (let request = 0; request < 4; request++) await get("small");
    expect((await get("small")).status).toBe(429);
    const reset = { ...known("small"), rule: "api", why: "A mistake" };
    expect(await call("reset", reset)).toMatchObject({
      clients: [{ quotas: [{ limit: 3, remaining: 3 }] }],
    });
    expect(await call("peek", known("small"))).toMatchObject({
      clients: [{ quotas: [{ remaining: 3 }] }],
    });
  });
});

it("shows the sources of limits in the list of rules", async () => {
  const slots = { from: "custom:quota", max: 8, default: 2 } as const;
  const { custom } = quotas();
  const { call } = createApi({ rules: [{ ...RULE, concurrent: slots }], custom });
  expect((await call("rules")).rules[0].limits).toEqual([
    { policy: "api/1h", limit: 100, window: "1h", source: { from: "custom:quota", max: 1000 } },
    {
      policy: "api/concurrent",
      limit: 2,
      window: "concurrent",
      source: { from: "custom:quota", max: 8 },
      concurrent: true,
    },
  ]);
});

describe("the client's number", () => {
  it("is in the answer of quotaPath, and in a 429", async () => {
    const { custom } = quotas();
    const { get, send } = createApi({ custom, quotaPath: "/quota" });
    for (let request = 0; request < 3; request++) await get("small");
    const denied = await get("small");
    expect([denied.status, limitsOf(denied)]).toEqual([429, [3]]);
    const page = await send("/quota", { headers: { "x-api-key": "small" } });
    expect(await page.json()).toMatchObject({ limits: [{ limit: 3, remaining: 0 }] });
    const other = await send("/quota", { headers: { "x-api-key": "big" } });
    expect(await other.json()).toMatchObject({ limits: [{ limit: 500, remaining: 500 }] });
  });

  describe("gives way to an override", () => {
    /** Sets an override of the client "big", or of all clients, and sends a request of each client. */
    async function limitsWith(effect: object, ...keys: string[]) {
      const { custom } = quotas();
      const control = new OverridingControl();
      const { get, call } = createApi({ custom }, control);
      const { client } = (await call("peek", known("big"))).clients[0];
      const about = { expiresAt: Date.now() + 3_600_000, reason: "A sale" };
      const set = { rule: "api", effect, ...("kind" in effect && { client }), ...about };
      await control.setOverride(set as never, "token");
      const responses = [];
      for (const key of keys) responses.push(await get(key));
      return {
        limits: responses.map((each) => limitsOf(each)[0]),
        statuses: responses.map(({ status }) => status),
        peeked: (await call("peek", known("big"))).clients[0].quotas[0]?.limit,
      };
    }

    it.each<[string, object, (number | undefined)[], number[], number]>([
      ["of the client's limits", { kind: "limits", limits: { api: 7 } }, [7, 3], [200, 200], 7],
      ["of the client's factor", { kind: "factor", factor: 3 }, [1500, 3], [200, 200], 1500],
      ["that blocks the client", { kind: "blocked" }, [0, 3], [429, 200], 0],
      [
        "that takes the client's limit away",
        { kind: "unlimited" },
        [undefined, 3],
        [200, 200],
        500,
      ],
      ["of the rule's factor, which multiplies it", { factor: 2 }, [1000, 6], [200, 200], 1000],
    ])("%s", async (_, override, limits, statuses, peeked) => {
      expect(await limitsWith(override, "big", "small")).toEqual({ limits, statuses, peeked });
    });

    it.each(["blocked", "unlimited"])("%s, without a call of the function", async (kind) => {
      const { asked, custom } = quotas();
      const control = new OverridingControl();
      const { call } = createApi({ custom }, control);
      const { client } = (await call("peek", known("big"))).clients[0];
      const about = { expiresAt: Date.now() + 3_600_000, reason: "A sale" };
      await control.setOverride(
        { rule: "api", client, effect: { kind }, ...about } as never,
        "token",
      );
      // The other isolate knows no number of the client.
      const other = createApi({ custom }, control);
      const calls = asked.mock.calls.length;
      for (let request = 0; request < 3; request++) await other.get("big");
      expect(asked).toHaveBeenCalledTimes(calls);
      await other.get("small");
      expect(asked).toHaveBeenCalledTimes(calls + 1);
    });
  });
});

describe("a service", () => {
  const create = (
    fields: object = {},
    quota?: (client: LimitClient) => unknown,
    bindings: object = {},
  ) => {
    const { asked, custom } = quotas(quota);
    const rules = [{ ...RULE, ...fields }] as ConfigInput["rules"];
    const config = defineConfig({ store: "memory", rules, custom, jwt: JWT });
    class Limits extends WeirService {
      readonly config = config;
    }
    return { service: new Limits(createExecutionContext(), bindings as never), asked };
  };

  it("limits, checks and reads by the client's number", async () => {
    const { service, asked } = create();
    expect(await service.getValue("api", { key: "small" })).toMatchObject([
      { limit: 3, remaining: 3 },
    ]);
    for (let call = 0; call < 3; call++) {
      expect(await service.check("api", { key: "small" })).toMatchObject({ ok: true });
      expect(await service.limit("api", { key: "small" })).toMatchObject({
        ok: true,
        quotas: [{ limit: 3, remaining: 2 - call }],
      });
    }
    expect(await service.check("api", { key: "small" })).toMatchObject({ ok: false });
    expect(await service.limit("api", { key: "small" })).toMatchObject({ ok: false });
    expect(await service.getValue("api", { key: "small" })).toMatchObject([{ remaining: 0 }]);
    expect(asked.mock.calls).toEqual([
      [{ key: "small", keys: ["small"], request: undefined }, expect.anything()],
    ]);
  });

  it("gives the default to a claim, to a call without a key, and to an address in place of the key", async () => {
    const { service, asked } = create();
    expect(await service.getValue("api")).toMatchObject([{ limit: 100 }]);
    const { service: ofClaims } = create({ limit: CLAIM });
    expect(await ofClaims.limit("api", { key: "big" })).toMatchObject({ quotas: [{ limit: 60 }] });
    expect(asked).not.toHaveBeenCalled();
  });

  it("works in a rule for programs", async () => {
    const { service } = create({ for: "programs" });
    expect(await service.limit("api", { key: "big" })).toMatchObject({ quotas: [{ limit: 500 }] });
  });

  it("works in a tier that the program names", async () => {
    const tiers = { by: "header:x-plan", limits: { pro: { limit: SOURCE, window: "1h" } } };
    const { service } = create({ limit: 7, tiers });
    const limitOf = async (options: object) => (await service.getValue("api", options))[0]?.limit;
    expect(await limitOf({ key: "big" })).toBe(7);
    expect(await limitOf({ key: "big", tier: "pro" })).toBe(500);
  });

  it.each([
    ["big", 500],
    ["small", 3],
    ["new", 100],
  ])("settles a reserve, refunds and resets by the number of %s", async (key, limit) => {
    const { service } = create({ cost: { reserve: 2, settle: "header:x-used" } });
    const { reserved } = (await service.limit("api", { key })) as LimitGranted;
    expect(
      await service.settle("api", { key, reserved: reserved as never, used: 1 }),
    ).toMatchObject({ ok: true, quotas: [{ limit, remaining: limit - 1 }] });
    expect(await service.limit("api", { key, cost: -1 })).toMatchObject({
      ok: true,
      quotas: [{ limit, remaining: limit }],
    });
    await service.limit("api", { key });
    await service.reset("api", { key });
    expect(await service.getValue("api", { key })).toMatchObject([{ limit, remaining: limit }]);
  });

  it("settles a reserve although the client's number has changed meanwhile", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_700_002_800_000 });
    let number = 500;
    const { service } = create({ cost: { reserve: 5, settle: "header:x-used" } }, () => number);
    const { reserved } = (await service.limit("api", { key: "a" })) as LimitGranted;
    number = 10;
    vi.setSystemTime(Date.now() + 60_000);
    const settled = await service.settle("api", { key: "a", reserved: reserved as never, used: 2 });
    expect(settled).toMatchObject({ ok: true, quotas: [{ limit: 10, remaining: 8 }] });
    expect(settled).not.toHaveProperty("reserveEnded");
    number = 0;
    vi.setSystemTime(Date.now() + 60_000);
    expect(await service.limit("api", { key: "a", cost: -2 })).toMatchObject({ ok: true });
    number = 10;
    vi.setSystemTime(Date.now() + 60_000);
    expect(await service.getValue("api", { key: "a" })).toMatchObject([{ remaining: 10 }]);
  });

  it("settles a reserve of quota that rolls over", async () => {
    const capacity = { from: "custom:quota", max: 2000, default: 200 };
    const { service } = create(
      { capacity, cost: { reserve: 5, settle: "header:x-used" } },
      () => 50,
    );
    const key = "a";
    const { reserved } = (await service.limit("api", { key })) as LimitGranted;
    const settled = await service.settle("api", { key, reserved: reserved as never, used: 2 });
    expect(settled).toMatchObject({ ok: true, quotas: [{ limit: 50 }] });
    expect(await service.getValue("api", { key })).toMatchObject([{ limit: 50, remaining: 48 }]);
  });
});
