import { describe, expect, it } from "vitest";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import { rollsOver } from "../../../src/limiter/counters.ts";
import { LiveOverrides } from "../../../src/overrides/live-overrides.ts";
import type {
  ClientEffect,
  Override,
  OverrideUpdate,
  RuleEffect,
} from "../../../src/overrides/override.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";

const NOW = 1_700_000_100_000;
const SOMEONE = "a".repeat(22);
const ABOUT = { expiresAt: NOW + 60_000, reason: "a test", by: "token", setAt: NOW };

function ruleOf(rule: Omit<RuleInput, "name">): Rule {
  return defineConfig({ store: "memory", rules: [{ name: "api", ...rule }] }).rules[0] as Rule;
}

const clientOverride = (effect: ClientEffect, client = SOMEONE): Override => {
  return { rule: "api", client, effect, ...ABOUT };
};
const ruleOverride = (effect: RuleEffect): Override => ({ rule: "api", effect, ...ABOUT });

function overridesWith(...all: Override[]): LiveOverrides {
  const overrides = new LiveOverrides();
  overrides.update({ version: 1, all });
  return overrides;
}

const appliedTo = (rule: Rule, windows = rule.windows): AppliedRule => {
  return { rule, windows, identity: SOMEONE };
};

/** The limits, capacities and reservable quotas that apply to a client. */
function windowsIn(overrides: LiveOverrides, rule: Rule, tier?: string) {
  const changed = overrides.ruleOf(rule, NOW) as Rule;
  const windows = (tier && changed.tiers?.windows.get(tier)) || changed.windows;
  const [applied] = overrides.clientsOf([appliedTo(changed, windows)], NOW);
  return applied?.windows.map(({ limit, capacity, maxReserved }) => [limit, capacity, maxReserved]);
}

const PLAIN = ruleOf({ limit: 10, window: "1m" });

describe("the override of a rule", () => {
  it("multiplies the limits of the rule and of its tiers, rounded down", () => {
    const rule = ruleOf({
      limits: [
        { limit: 10, window: "1m" },
        { limit: 105, window: "1h" },
      ],
      tiers: { by: "header:x-plan", limits: { pro: { limit: 100, window: "1m" } } },
    });
    const half = overridesWith(ruleOverride({ factor: 0.5 }));
    expect(windowsIn(half, rule)).toEqual([
      [5, 5, 0],
      [52, 52, 0],
    ]);
    expect(windowsIn(half, rule, "pro")).toEqual([[50, 50, 0]]);
  });

  it.each([
    [0.29, 100, 29],
    [1.1, 10, 11],
    [0.01, 10, 1],
    [0, 10, 0],
    [1000, 999_999_999_999_999, 999_999_999_999_999],
    [5, 0, 0],
  ])("with the factor %d makes a limit of %d one of %d", (factor, limit, changed) => {
    const overrides = overridesWith(ruleOverride({ factor }));
    expect(windowsIn(overrides, ruleOf({ limit, window: "1m" }))).toEqual([[changed, changed, 0]]);
  });

  it("allows at most as many open requests as a rule can", () => {
    const rule = ruleOf({ concurrent: 400 });
    const maximum = (factor: number) =>
      windowsIn(overridesWith(ruleOverride({ factor })), rule)?.[0]?.[0];
    expect([0, 0.001, 2, 3].map(maximum)).toEqual([0, 1, 800, 1000]);
  });

  it("keeps the rollover and the reservations of a rule, in proportion", () => {
    const rule = ruleOf({ limit: 10, window: "1m", capacity: 30, maxReserved: 5 });
    const windowsWith = (factor: number) =>
      windowsIn(overridesWith(ruleOverride({ factor })), rule)?.[0];
    expect(windowsWith(2)).toEqual([20, 60, 10]);
    expect(windowsWith(0.1)).toEqual([1, 3, 1]);
    expect(windowsWith(0)).toEqual([0, 0, 0]);
    const huge = {
      limit: 999_999_999_999_998,
      capacity: 999_999_999_999_999,
      window: "1m",
    } as const;
    expect(windowsIn(overridesWith(ruleOverride({ factor: 1000 })), ruleOf(huge))).toEqual([
      [999_999_999_999_998, 999_999_999_999_999, 0],
    ]);
  });

  it.each([
    ["enforce", "shadow"],
    ["enforce", "mark"],
    ["shadow", "enforce"],
    ["shadow", "mark"],
  ] as const)("changes the mode to %s from %s", (mode, configured) => {
    const overrides = overridesWith(ruleOverride({ mode }));
    const rule = ruleOf({ limit: 1, window: "1m", mode: configured });
    expect(overrides.ruleOf(rule, NOW)).toMatchObject({ mode, windows: rule.windows });
  });

  it("omits a rule that is off, and keeps the others in their order", () => {
    const { rules } = defineConfig({
      store: "memory",
      rules: ["first", "api", "last"].map((name) => ({ name, limit: 1, window: "1m" })),
    });
    const matches = rules.map((rule) => ({ rule, path: "/", params: {} }));
    const overrides = overridesWith(ruleOverride({ mode: "off" }));
    const names = overrides.matchesOf(matches, NOW).map(({ rule }) => rule.name);
    expect(names).toEqual(["first", "last"]);
    expect(overrides.ruleOf(PLAIN, NOW)).toBeUndefined();
  });

  it("returns the same object for the same rule until the override changes", () => {
    const overrides = overridesWith(ruleOverride({ factor: 2 }));
    const changed = overrides.ruleOf(PLAIN, NOW);
    expect(overrides.ruleOf(PLAIN, NOW)).toBe(changed);
    overrides.update({
      version: 2,
      all: [clientOverride({ kind: "blocked" }), ruleOverride({ factor: 2 })],
    });
    expect(overrides.ruleOf(PLAIN, NOW)).toBe(changed);
    overrides.update({ version: 3, all: [ruleOverride({ factor: 3 })] });
    expect(overrides.ruleOf(PLAIN, NOW)?.windows[0]?.limit).toBe(30);
  });

  it.each(["shadow", "off"] as const)("enforces no rule if WEIR_MODE is %s", (deploymentMode) => {
    const overrides = new LiveOverrides(deploymentMode);
    overrides.update({ version: 1, all: [ruleOverride({ mode: "enforce", factor: 2 })] });
    const shadow = ruleOf({ limit: 1, window: "1m", mode: "shadow" });
    expect(overrides.ruleOf(shadow, NOW)).toMatchObject({
      mode: "shadow",
      windows: [{ limit: 2 }],
    });
  });
});

describe("the override of a client", () => {
  it("replaces limits by the names of their policies, and keeps the other limits", () => {
    const rule = ruleOf({
      limits: [
        { limit: 10, window: "1m" },
        { limit: 100, window: "1h" },
      ],
      tiers: { by: "header:x-plan", limits: { pro: { limit: 50, window: "1m" } } },
    });
    const overrides = overridesWith(
      clientOverride({ kind: "limits", limits: { "api/1m": 7, api: 9 } }),
    );
    expect(windowsIn(overrides, rule)).toEqual([
      [7, 7, 0],
      [100, 100, 0],
    ]);
    expect(windowsIn(overrides, rule, "pro")).toEqual([[9, 9, 0]]);
  });

  it("ignores names that objects inherit", () => {
    const overrides = overridesWith(clientOverride({ kind: "limits", limits: {} }));
    const rule = ruleOf({ limit: 10, window: "1m" });
    const named = { ...rule, windows: [{ ...rule.windows[0], policy: "constructor" }] } as Rule;
    expect(windowsIn(overrides, named)).toEqual([[10, 10, 0]]);
  });

  it("replaces the factor of the rule's override", () => {
    const factors = [ruleOverride({ factor: 0.5 }), clientOverride({ kind: "factor", factor: 3 })];
    expect(windowsIn(overridesWith(...factors), PLAIN)).toEqual([[30, 30, 0]]);
    expect(windowsIn(overridesWith(...factors.slice(0, 1)), PLAIN)).toEqual([[5, 5, 0]]);
  });

  it("omits the rule for a client without a limit", () => {
    const overrides = overridesWith(clientOverride({ kind: "unlimited" }));
    const other = { ...appliedTo(PLAIN), identity: "b".repeat(22) };
    expect(overrides.clientsOf([appliedTo(PLAIN), other], NOW)).toEqual([other]);
  });

  it("gives a blocked client no quota until the override ends", () => {
    const overrides = overridesWith(clientOverride({ kind: "blocked" }));
    expect(overrides.clientsOf([appliedTo(PLAIN)], NOW)).toMatchObject([
      { blockedUntil: ABOUT.expiresAt, windows: [{ limit: 0, capacity: 0 }] },
    ]);
  });

  it("applies to a rule in shadow mode whose client is identified later", async () => {
    const overrides = overridesWith(clientOverride({ kind: "unlimited" }));
    const rule = ruleOf({ limit: 10, window: "1m", mode: "shadow" });
    const pending = (identity: string) => {
      const pendingRules = Promise.resolve([{ ...appliedTo(rule), identity }]);
      return { rule, windows: [], identity: "", pendingRules };
    };
    // The promise reads the clock of the isolate, so the override must not have ended by then.
    const endless = {
      ...clientOverride({ kind: "unlimited" }),
      expiresAt: Number.MAX_SAFE_INTEGER,
    };
    overrides.update({ version: 2, all: [endless] });
    const [changed] = overrides.clientsOf([pending(SOMEONE)], NOW);
    expect(await changed?.pendingRules).toEqual([]);
    const [other] = overrides.clientsOf([pending("b".repeat(22))], NOW);
    expect(await other?.pendingRules).toHaveLength(1);
  });

  it("passes on the rejection of such a rule", async () => {
    const overrides = overridesWith(clientOverride({ kind: "unlimited" }));
    const pendingRules = Promise.reject(new Error("broken"));
    const rule = ruleOf({ limit: 10, window: "1m", mode: "shadow" });
    const [changed] = overrides.clientsOf([{ rule, windows: [], identity: "", pendingRules }], NOW);
    await expect(changed?.pendingRules).rejects.toThrow("broken");
  });
});

describe("the lists of requests without overrides", () => {
  it("are returned unchanged", () => {
    const matches = [{ rule: PLAIN, path: "/", params: {} }];
    const applied = [{ ...appliedTo(PLAIN), identity: "b".repeat(22) }];
    const others = overridesWith(clientOverride({ kind: "blocked" }), {
      ...ruleOverride({ factor: 2 }),
      rule: "other",
    });
    for (const overrides of [new LiveOverrides(), others]) {
      expect(overrides.matchesOf(matches, NOW)).toBe(matches);
      expect(overrides.clientsOf(applied, NOW)).toBe(applied);
    }
  });
});

describe("an override", () => {
  it("ends at its time to the millisecond, without a new load", () => {
    const overrides = overridesWith(
      ruleOverride({ mode: "shadow" }),
      clientOverride({ kind: "unlimited" }),
    );
    const last = ABOUT.expiresAt - 1;
    expect(overrides.ruleOf(PLAIN, last)?.mode).toBe("shadow");
    expect(overrides.clientsOf([appliedTo(PLAIN)], last)).toEqual([]);
    expect(overrides.ruleOf(PLAIN, last + 1)).toBe(PLAIN);
    expect(overrides.clientsOf([appliedTo(PLAIN)], last + 1)).toEqual([appliedTo(PLAIN)]);
  });
});

describe("an update", () => {
  const blocked = clientOverride({ kind: "blocked" });
  const isBlocked = (overrides: LiveOverrides) =>
    overrides.clientsOf([appliedTo(PLAIN)], NOW)[0]?.blockedUntil !== undefined;

  it("replaces all overrides", () => {
    const overrides = overridesWith(ruleOverride({ factor: 2 }));
    overrides.update({ version: 2, all: [ruleOverride({ factor: 2 }), blocked] });
    expect([overrides.version, overrides.size, isBlocked(overrides)]).toEqual([2, 2, true]);
    overrides.update({ version: 3, all: [clientOverride({ kind: "factor", factor: 2 })] });
    expect([overrides.version, overrides.size, isBlocked(overrides)]).toEqual([3, 1, false]);
    expect(overrides.ruleOf(PLAIN, NOW)).toBe(PLAIN);
  });

  it("changes nothing if a newer answer has arrived since it was asked for", () => {
    const overrides = overridesWith(ruleOverride({ factor: 2 }));
    overrides.update({ version: 9, all: [blocked] }, 1);
    overrides.update({ version: 5, all: [] }, 1);
    overrides.update({ version: 6, all: [] }, 0);
    expect([overrides.version, isBlocked(overrides)]).toEqual([9, true]);
  });

  it.each<[string, Override]>([
    ["mode", ruleOverride({ mode: "slow" as "off" })],
    ["kind", clientOverride({ kind: "slow" } as never)],
  ])("of another version with an unknown %s changes no limit", (_, odd) => {
    const other = { ...ruleOverride({ mode: "off" }), rule: "other" };
    const overrides = overridesWith(odd, other);
    expect(windowsIn(overrides, PLAIN)).toEqual([[10, 10, 0]]);
    expect(overrides.ruleOf({ ...PLAIN, name: "other" }, NOW)).toBeUndefined();
  });

  it("without a list of overrides fails and changes nothing", () => {
    const overrides = overridesWith(blocked);
    expect(() => overrides.update({ version: 2 } as OverrideUpdate)).toThrow();
    expect([overrides.version, isBlocked(overrides)]).toEqual([1, true]);
  });

  it("applies if the control object has lost its versions and begins anew", () => {
    const overrides = new LiveOverrides();
    overrides.update({ version: 2, all: [ruleOverride({ factor: 2 }), blocked] });
    overrides.update({ version: 1, all: [blocked] }, 2);
    expect([overrides.version, overrides.size]).toEqual([1, 1]);
  });
});

describe("a client whose own capacity is its limit", () => {
  const windows = PLAIN.windows.map((window) => ({ ...window, rollsOver: true as const }));
  const counterIn = (effect: ClientEffect) => {
    const overrides = overridesWith(clientOverride(effect));
    return overrides.clientOf(appliedTo(PLAIN, windows), NOW)?.windows.map(rollsOver);
  };

  it("keeps its counter under another limit, and has none under a limit of 0", () => {
    expect(counterIn({ kind: "factor", factor: 2 })).toEqual([true]);
    expect(counterIn({ kind: "limits", limits: { api: 5 } })).toEqual([true]);
    expect(counterIn({ kind: "factor", factor: 0 })).toEqual([false]);
    expect(counterIn({ kind: "blocked" })).toEqual([false]);
  });
});

describe("a client whose own number is 0", () => {
  it.each([
    { limit: 10, window: "1m", capacity: 30 },
    { limit: 10, window: "1m", maxReserved: 5 },
  ] as const)("has its usual counter under another limit: %j", (fields) => {
    const rule = ruleOf(fields);
    const none = rule.windows.map((window) => {
      return { ...window, limit: 0, capacity: 0, maxReserved: 0 };
    });
    const overrides = overridesWith(clientOverride({ kind: "limits", limits: { api: 5 } }));
    const applied = { ...appliedTo(rule, none), declared: rule.windows };
    const windows = overrides.clientOf(applied, NOW)?.windows ?? [];
    expect(windows.map(({ limit }) => limit)).toEqual([5]);
    expect(windows.map(rollsOver)).toEqual(rule.windows.map(rollsOver));
  });
});
