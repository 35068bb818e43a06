import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import type { ControlApi } from "../../src/control/protocol.ts";
import { WeirService, weir } from "../../src/index.ts";
import { PATIENCE } from "../patience.ts";

const NOW = 1_700_000_100_000;
const ABOUT = { expiresIn: "2h", reason: "A sale" } as const;
const SOMEONE = { key: { ip: "203.0.113.7" } } as const;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});
afterEach(async () => {
  const service = serviceOf([]);
  for (const { rule, client } of await service.overrides()) {
    await env.WEIR_CONTROL.getByName("global").removeOverride(
      client === undefined ? rule : `${rule}:${client}`,
      "test",
      "Clean up",
    );
  }
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const BINDINGS = { WEIR_CONTROL: env.WEIR_CONTROL };

function serviceOf(
  rules: ConfigInput["rules"],
  { bindings = BINDINGS as object, ...options }: Partial<ConfigInput> & { bindings?: object } = {},
) {
  const config = defineConfig({ store: "memory", ...options, rules });
  class Limits extends WeirService {
    readonly config = config;
  }
  return new Limits(createExecutionContext(), bindings as never);
}

const API = { name: "api", limit: 2, window: "1h" } as const;

async function admitted(service: WeirService, calls: number, options: object = SOMEONE) {
  let count = 0;
  for (let call = 0; call < calls; call++) if ((await service.limit("api", options)).ok) count++;
  return count;
}

describe("override", () => {
  it("raises the limit of one client at once in its isolate, and returns the override", async () => {
    const service = serviceOf([API]);
    expect(await admitted(service, 3)).toBe(2);
    const override = await service.override("api", {
      key: SOMEONE.key,
      effect: { kind: "limits", limits: { api: 5 } },
      ...ABOUT,
    });
    expect(override).toEqual({
      rule: "api",
      client: expect.stringMatching(/^[\w-]{22}$/),
      effect: { kind: "limits", limits: { api: 5 } },
      expiresAt: NOW + 7_200_000,
      reason: "A sale",
      by: "rpc",
      setAt: NOW,
    });
    expect(await admitted(service, 5)).toBe(3);
    expect(await service.getValue("api", SOMEONE)).toMatchObject([{ limit: 5, remaining: 0 }]);
    expect(await service.check("api", SOMEONE)).toMatchObject({ ok: false });
    expect(await admitted(service, 5, { key: "203.0.113.8" })).toBe(2);
    expect(await service.overrides()).toEqual([override]);
  });

  it("names a client by its identity too", async () => {
    const service = serviceOf([API]);
    const effect = { kind: "blocked" } as const;
    const { client } = await service.override("api", { ...SOMEONE, effect, ...ABOUT });
    const raised = { kind: "factor", factor: 2 } as const;
    const options = { client: client as string, effect: raised, ...ABOUT };
    expect(await service.override("api", options)).toMatchObject({ client });
    expect(await admitted(service, 6)).toBe(4);
    await service.removeOverride("api", { client: client as string, reason: "Over" });
    expect(await service.overrides()).toEqual([]);
  });

  it("changes a rule for all clients", async () => {
    const service = serviceOf([API]);
    await service.override("api", { effect: { factor: 2 }, ...ABOUT });
    expect(await admitted(service, 6)).toBe(4);
    await service.override("api", { effect: { mode: "shadow" }, ...ABOUT });
    expect(await service.limit("api", SOMEONE)).toEqual({ ok: true, quotas: [] });
    await service.override("api", { effect: { mode: "off" }, ...ABOUT });
    expect(await admitted(service, 6, { key: "203.0.113.9" })).toBe(6);
    expect(await service.getValue("api", { key: "203.0.113.9" })).toMatchObject([{ remaining: 2 }]);
  });

  it("blocks a client, also for calls that cost nothing, and lets it go on when it ends", async () => {
    const service = serviceOf([API]);
    const effect = { kind: "blocked" } as const;
    await service.override("api", { ...SOMEONE, effect, expiresIn: 10, reason: "Abuse" });
    for (const cost of [0, 1]) {
      expect(await service.limit("api", { ...SOMEONE, cost })).toMatchObject({
        ok: false,
        retryAfterMs: 10_000,
        quotas: [{ policy: "api", limit: 0, remaining: 0, violated: true }],
      });
    }
    await expect(service.limit("api", { ...SOMEONE, throws: true })).rejects.toMatchObject({
      name: "RateLimitError",
      retryAfterMs: 10_000,
    });
    expect(await service.getValue("api", SOMEONE)).toMatchObject([{ limit: 0, remaining: 0 }]);
    vi.setSystemTime(NOW + 9_999);
    expect(await admitted(service, 1)).toBe(0);
    vi.setSystemTime(NOW + 10_000);
    expect(await admitted(service, 3)).toBe(2);
  });

  it("does not count a client without a limit", async () => {
    const service = serviceOf([API]);
    await service.override("api", { key: SOMEONE.key, effect: { kind: "unlimited" }, ...ABOUT });
    expect(await service.limit("api", SOMEONE)).toEqual({ ok: true, quotas: [] });
    expect(await admitted(service, 5)).toBe(5);
    expect(await service.getValue("api", SOMEONE)).toMatchObject([{ remaining: 2 }]);
    await service.removeOverride("api", { ...SOMEONE, reason: "Over" });
    expect(await admitted(service, 5)).toBe(2);
  });

  it("changes the windows of the client's tier", async () => {
    const tiers = { by: "header:x-plan", limits: { pro: { limit: 4, window: "1h" } } } as const;
    const service = serviceOf([{ ...API, tiers }]);
    await service.override("api", { effect: { factor: 2 }, ...ABOUT });
    expect(await admitted(service, 10, { ...SOMEONE, tier: "pro" })).toBe(8);
    const effect = { kind: "factor", factor: 3 } as const;
    await service.override("api", { ...SOMEONE, effect, ...ABOUT });
    expect(await admitted(service, 10, { ...SOMEONE, tier: "pro" })).toBe(4);
  });

  it("applies to the gateway's requests of the same client", async () => {
    const config = defineConfig({ store: "memory", rules: [API] });
    class Limits extends WeirService {
      readonly config = config;
    }
    const service = new Limits(createExecutionContext(), BINDINGS as never);
    const effect = { kind: "blocked" } as const;
    await service.override("api", { ...SOMEONE, effect, ...ABOUT });
    const request = new Request("https://api.example.com/", {
      headers: { "CF-Connecting-IP": "203.0.113.7" },
    });
    const response = await weir(config).fetch(
      request as never,
      BINDINGS,
      createExecutionContext(),
      () => new Response(),
    );
    expect([response.status, response.headers.get("ratelimit-policy")]).toEqual([
      429,
      '"api";q=0;w=3600',
    ]);
  });

  it.each(["shadow", "off"])("enforces nothing if WEIR_MODE is %s", async (WEIR_MODE) => {
    const service = serviceOf([{ ...API, mode: "shadow" }], {
      bindings: { ...BINDINGS, WEIR_MODE },
    });
    await service.override("api", { effect: { mode: "enforce" }, ...ABOUT });
    await service.override("api", { key: SOMEONE.key, effect: { kind: "blocked" }, ...ABOUT });
    expect(await admitted(service, 5)).toBe(5);
  });
});

describe("a reserve that was taken before an override", () => {
  const TOKENS = { name: "api", limit: 100, window: "1h", cost: { reserve: 40 } } as const;
  it.each(
    [100, 200].flatMap((capacity) =>
      [
        { kind: "limits", limits: { api: 50 } } as const,
        { kind: "factor", factor: 0 } as const,
        { kind: "unlimited" } as const,
        { kind: "blocked" } as const,
      ].map((effect) => [effect, capacity] as const),
    ),
  )("is settled under the effect %j, with a capacity of %d", async (effect, capacity) => {
    const rule = { ...TOKENS, capacity, for: "programs", key: "custom:account" } as const;
    const service = serviceOf([rule]);
    const options = { key: "acme" };
    const first = await service.limit("api", options);
    const override = { ...options, effect, ...ABOUT };
    await service.override("api", override);
    const reserved = first.ok && first.reserved;
    if (!reserved) throw new Error("Nothing was reserved.");
    const settled = await service.settle("api", { ...options, reserved, used: 10 });
    expect(settled).toMatchObject({ ok: true });
    expect(settled).not.toHaveProperty("reserveEnded");
    await service.removeOverride("api", { ...options, reason: "Over" });
    const [quota] = await service.getValue("api", options);
    expect(quota?.remaining).toBe(capacity - 10);
  });
});

describe("a wrong override", () => {
  const service = serviceOf([API, { name: "login", limit: 1, window: "1m" }]);
  const effect = { kind: "factor", factor: 2 } as const;
  const call = (rule: string, options: unknown) => service.override(rule, options as never);

  it.each([
    [
      "apis",
      { ...SOMEONE, effect, ...ABOUT },
      'There is no rule "apis". The rules are: api, login.',
    ],
    ["api", undefined, "The options must be an object with any of key, client, reason, effect"],
    ["api", { ...SOMEONE, effect, ...ABOUT, key: undefined }, "The option key is undefined."],
    ["api", { ...SOMEONE, effect, ...ABOUT, reazon: "x" }, 'There is no option "reazon".'],
    [
      "api",
      { ...SOMEONE, effect, expiresIn: "2h" },
      "reason must be a text of 1 to 500 characters, but is missing.",
    ],
    [
      "api",
      { ...SOMEONE, effect, reason: "x" },
      "expiresIn must be a length of time from 1 second to 365 days",
    ],
    ["api", { effect, ...ABOUT }, "effect.kind must be left out: the fields are mode, factor."],
    ["api", { ...SOMEONE, effect: { mode: "off" }, ...ABOUT }, 'effect.kind must be "limits", '],
    [
      "api",
      { ...SOMEONE, effect: { kind: "limits", limits: { login: 1 } }, ...ABOUT },
      "effect.limits.login must be left out: the policies of the rule are api.",
    ],
    [
      "api",
      { key: { asn: "1" }, effect, ...ABOUT },
      'For the rule "api", the key must be { ip: "…" }.',
    ],
    [
      "api",
      { client: "203.0.113.7", effect, ...ABOUT },
      "The option client must be an identity of 22 characters",
    ],
    [
      "api",
      { client: "x".repeat(22), ...SOMEONE, effect, ...ABOUT },
      "The options key and client both name a client.",
    ],
  ])("of %s with %j throws an error that names the cure", async (rule, options, message) => {
    await expect(call(rule, options)).rejects.toThrow(message);
  });

  it("changes nothing", async () => {
    expect(await service.overrides()).toEqual([]);
  });
});

describe("a slow answer to a change", () => {
  const SET = { ...SOMEONE, effect: { kind: "blocked" } as const, ...ABOUT };
  const REMOVED = { ...SOMEONE, reason: "Over" };

  /** Returns a service whose control object makes changes at once, but whose answers wait. */
  async function slowService() {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const getByName = (name: string): Partial<ControlApi> => {
      const object = env.WEIR_CONTROL.getByName(name) as unknown as ControlApi;
      return {
        upload: (sums) => object.upload(sums),
        setOverride: async (...change) => {
          const result = await object.setOverride(...change);
          await released;
          return result;
        },
        removeOverride: async (...change) => {
          const removed = await object.removeOverride(...change);
          await released;
          return removed;
        },
      };
    };
    const service = serviceOf([API], { bindings: { WEIR_CONTROL: { getByName } } });
    // The service's isolate loads the overrides now, and not again within ten seconds.
    await admitted(service, 1, { key: "203.0.113.8" });
    return { service, release };
  }

  it("leaves out an override that was removed meanwhile", async () => {
    const { service, release } = await slowService();
    const other = serviceOf([API]);
    const change = service.override("api", SET);
    await vi.waitFor(async () => expect(await other.overrides()).toHaveLength(1), PATIENCE);
    await other.removeOverride("api", REMOVED);
    release();
    await change;
    expect(await admitted(service, 2)).toBe(2);
  });

  it("keeps an override that was set again meanwhile", async () => {
    const other = serviceOf([API]);
    await other.override("api", SET);
    const { service, release } = await slowService();
    const removal = service.removeOverride("api", REMOVED);
    await vi.waitFor(async () => expect(await other.overrides()).toEqual([]), PATIENCE);
    await other.override("api", SET);
    release();
    await removal;
    expect(await admitted(service, 2)).toBe(0);
  });
});

it("returns an override that was set although it cannot be loaded", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => {});
  vi.spyOn(console, "error").mockImplementation(() => {});
  const getByName = (name: string): Partial<ControlApi> => {
    const object = env.WEIR_CONTROL.getByName(name) as unknown as ControlApi;
    return {
      setOverride: (...change) => object.setOverride(...change),
      upload: () => Promise.reject(new Error("broken")),
    };
  };
  const service = serviceOf([API], { bindings: { WEIR_CONTROL: { getByName } } });
  const override = await service.override("api", { effect: { mode: "off" }, ...ABOUT });
  expect(await serviceOf([API]).overrides()).toEqual([override]);
});

describe("removeOverride", () => {
  it("removes overrides of a rule that is no longer in the configuration", async () => {
    const before = serviceOf([API, { ...API, name: "old" }]);
    await before.override("old", { effect: { factor: 2 }, ...ABOUT });
    const effect = { kind: "blocked" } as const;
    const { client } = await before.override("old", { ...SOMEONE, effect, ...ABOUT });
    const after = serviceOf([API]);
    const reason = "The rule is gone";
    expect(await after.removeOverride("old", { reason })).toMatchObject({ rule: "old" });
    const options = { client: client as string, reason };
    expect(await after.removeOverride("old", options)).toMatchObject({ client });
    expect(await after.overrides()).toEqual([]);
    await expect(after.removeOverride("old", options)).rejects.toThrow('There is no rule "old"');
  });

  it("returns the override that it has removed, and undefined if there was none", async () => {
    const service = serviceOf([API]);
    const set = await service.override("api", { effect: { mode: "off" }, ...ABOUT });
    expect(await service.removeOverride("api", { reason: "Over" })).toEqual(set);
    expect(await service.removeOverride("api", { reason: "Over" })).toBeUndefined();
    expect(await admitted(service, 3)).toBe(2);
  });

  it("needs a reason", async () => {
    const service = serviceOf([API]);
    await expect(service.removeOverride("api", { reason: " " })).rejects.toThrow(
      'reason must be a text of 1 to 500 characters, not " ".',
    );
  });

  it("is in the list of changes, with the call as its author", async () => {
    const service = serviceOf([API]);
    await service.override("api", { effect: { mode: "off" }, ...ABOUT });
    await service.removeOverride("api", { reason: "Over" });
    const entries = await env.WEIR_CONTROL.getByName("global").audit(2);
    expect(entries).toMatchObject([
      { action: "remove-override", rule: "api", by: "rpc", why: "Over" },
      { action: "override", rule: "api", by: "rpc", why: "A sale" },
    ]);
  });
});

describe("a Worker without the control object", () => {
  const service = serviceOf([API], { bindings: {} });
  const message = 'name = "WEIR_CONTROL", class_name = "ControlObject"';

  it("names what to add", async () => {
    const override = { effect: { mode: "off" }, ...ABOUT } as const;
    await expect(service.override("api", override)).rejects.toThrow(message);
    await expect(service.removeOverride("api", { reason: "Over" })).rejects.toThrow(message);
    await expect(service.overrides()).rejects.toThrow(message);
  });

  it("limits as configured", async () => {
    expect(await admitted(service, 3)).toBe(2);
  });
});

describe("1,000 overrides", () => {
  it("are the maximum", async () => {
    const full: Pick<typeof env.WEIR_CONTROL, "getByName"> = {
      getByName: () => ({ setOverride: async () => ({ ok: false, fault: "full" }) }) as never,
    };
    const service = serviceOf([API], { bindings: { WEIR_CONTROL: full } });
    const options = { effect: { mode: "off" }, ...ABOUT } as const;
    await expect(service.override("api", options)).rejects.toThrow(
      "There are 1000 overrides already, which is the maximum. Remove some of them first.",
    );
  });
});
