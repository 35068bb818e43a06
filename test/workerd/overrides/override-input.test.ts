import { describe, expect, it } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import {
  type CheckOptions,
  checkOverride,
  describeFaults,
} from "../../../src/overrides/override-input.ts";

const NOW = Date.UTC(2026, 10, 22);
const { rules } = defineConfig({
  store: "memory",
  rules: [
    {
      name: "api",
      limits: [
        { limit: 10, window: "1m" },
        { limit: 100, window: "1h" },
      ],
      tiers: { by: "header:x-plan", limits: { pro: { limit: 50, window: "1m" } } },
    },
    { name: "login", limit: 5, window: "1m" },
    { name: "export", limit: 5, window: "1m", concurrent: 2 },
  ],
});

const OPTIONS: CheckOptions = { isForClient: true, rules, now: NOW };
const INPUT = {
  rule: "api",
  effect: { kind: "limits", limits: { "api/1m": 50 } },
  expiresIn: "2h",
  reason: "A sale",
};

function faultsOf(fields: Record<string, unknown>, options: Partial<CheckOptions> = {}): string {
  const input = Object.fromEntries(
    Object.entries({ ...INPUT, ...fields }).filter(([, value]) => value !== undefined),
  );
  const check = checkOverride(input, { ...OPTIONS, ...options });
  return check.ok ? "none" : describeFaults(check.faults);
}

describe("the input of an override", () => {
  it("has the rule, the effect, the end and the reason", () => {
    expect(checkOverride({ ...INPUT, reason: "  A sale " }, OPTIONS)).toEqual({
      ok: true,
      override: {
        rule: "api",
        isForClient: true,
        effect: { kind: "limits", limits: { "api/1m": 50 } },
        expiresAt: NOW + 7_200_000,
        reason: "A sale",
      },
    });
  });

  it.each([
    [{ kind: "limits", limits: { "api/1m": 0, "api/1h": 999_999_999_999_999, api: 3 } }],
    [{ kind: "factor", factor: 0 }],
    [{ kind: "factor", factor: 1000 }],
    [{ kind: "unlimited" }],
    [{ kind: "blocked" }],
  ])("accepts %j for a client", (effect) => {
    expect(checkOverride({ ...INPUT, effect }, OPTIONS)).toMatchObject({ override: { effect } });
  });

  it.each([
    [{ mode: "enforce" }],
    [{ mode: "shadow", factor: 0.5 }],
    [{ mode: "off" }],
    [{ factor: 2 }],
  ])("accepts %j for a rule", (effect) => {
    const check = checkOverride({ ...INPUT, effect }, { ...OPTIONS, isForClient: false });
    expect(check).toMatchObject({ override: { effect, isForClient: false } });
  });

  it.each([
    [{ expiresIn: "1s" }, NOW + 1000],
    [{ expiresIn: 90 }, NOW + 90_000],
    [{ expiresIn: "365d" }, NOW + 365 * 86_400_000],
    [{ expiresIn: undefined, expiresAt: "2026-11-22T00:00:01Z" }, NOW + 1000],
    [{ expiresIn: undefined, expiresAt: "2026-12-01T08:30+01:00" }, Date.UTC(2026, 11, 1, 7, 30)],
    [{ expiresIn: undefined, expiresAt: NOW + 5000 }, NOW + 5000],
    [{ expiresIn: undefined, expiresAt: new Date(NOW + 5000) }, NOW + 5000],
  ])("reads %j as the time at which it ends", (fields, expiresAt) => {
    expect(checkOverride({ ...INPUT, ...fields }, OPTIONS)).toMatchObject({
      override: { expiresAt },
    });
  });

  it("may have fields that the caller reads itself", () => {
    expect(faultsOf({ client: "x" }, { otherFields: ["client"] })).toBe("none");
    expect(faultsOf({ client: "x" })).toBe(
      "client must be left out: the fields are rule, effect, expiresIn, expiresAt, reason.",
    );
  });

  it("is checked without the rules if only the deployed Worker knows them", () => {
    const effect = { kind: "limits", limits: { other: 1 } };
    expect(faultsOf({ rule: "other", effect }, { rules: undefined })).toBe("none");
  });
});

describe("a fault of an override", () => {
  it("is a number of open requests that no rule may have", () => {
    const effectOf = (limit: number) => ({
      kind: "limits",
      limits: { "export/concurrent": limit },
    });
    expect(faultsOf({ rule: "export", effect: effectOf(1000) })).toBe("none");
    expect(faultsOf({ rule: "export", effect: effectOf(1001) })).toBe(
      'effect.limits["export/concurrent"] must be at most 1000, because it limits open requests.',
    );
    const limits = { "export/1m": 1001 };
    expect(faultsOf({ rule: "export", effect: { kind: "limits", limits } })).toBe("none");
  });

  it.each([
    [{ rule: undefined }, "rule must be the name of a rule: api, login, export, but is missing."],
    [{ rule: "apis" }, 'rule must be the name of a rule: api, login, export, not "apis".'],
    [{ rule: 3 }, "rule must be the name of a rule: api, login, export, not 3."],
    [{ reason: undefined }, "reason must be a text of 1 to 500 characters, but is missing."],
    [{ reason: "   " }, 'reason must be a text of 1 to 500 characters, not "   ".'],
    [{ reason: "x".repeat(501) }, "reason must be a text of 1 to 500 characters, not "],
    [{ effect: undefined }, "effect must be, for a client, "],
    [
      { effect: { mode: "off" } },
      'effect.kind must be "limits", "factor", "unlimited" or "blocked", but is missing.',
    ],
    [
      { effect: { kind: "off" } },
      'effect.kind must be "limits", "factor", "unlimited" or "blocked", not "off".',
    ],
    [{ effect: { kind: "limits" } }, "effect.limits must be an object of limits by policy, "],
    [
      { effect: { kind: "limits", limits: {} } },
      "effect.limits must be an object of limits by policy, ",
    ],
    [
      { effect: { kind: "limits", limits: { "api/1m": -1 } } },
      'effect.limits["api/1m"] must be a whole number from 0 to 999999999999999, not -1.',
    ],
    [
      { effect: { kind: "limits", limits: { "api/1m": 1.5 } } },
      'effect.limits["api/1m"] must be a whole number from 0 to 999999999999999, not 1.5.',
    ],
    [
      { effect: { kind: "limits", limits: { "api/1d": 5 } } },
      'effect.limits["api/1d"] must be left out: the policies of the rule are api/1m, api/1h, api.',
    ],
    [
      { effect: { kind: "factor" } },
      "effect.factor must be a number from 0 to 1000, but is missing.",
    ],
    [
      { effect: { kind: "factor", factor: -0.1 } },
      "effect.factor must be a number from 0 to 1000, not -0.1.",
    ],
    [
      { effect: { kind: "factor", factor: 1001 } },
      "effect.factor must be a number from 0 to 1000, not 1001.",
    ],
    [
      { effect: { kind: "factor", factor: Number.NaN } },
      "effect.factor must be a number from 0 to 1000, not NaN.",
    ],
    [
      { effect: { kind: "blocked", factor: 2 } },
      "effect.factor must be left out: the fields are kind.",
    ],
    [{ expiresIn: undefined }, "expiresIn must be a length of time from 1 second to 365 days"],
    [{ expiresAt: NOW + 5000 }, "there are both of them."],
    [{ expiresIn: "2 hours" }, 'or a number of seconds, not "2 hours".'],
    [{ expiresIn: 0 }, "or a number of seconds, not 0."],
    [{ expiresIn: "366d" }, 'or a number of seconds, not "366d".'],
    [{ expiresIn: undefined, expiresAt: "tomorrow" }, "expiresAt must be a time with its zone, "],
    [
      { expiresIn: undefined, expiresAt: "2026-12-01T08:00" },
      "expiresAt must be a time with its zone, ",
    ],
    [{ expiresIn: undefined, expiresAt: NOW + 999 }, "expiresAt must be a time with its zone, "],
    [
      { expiresIn: undefined, expiresAt: NOW + 366 * 86_400_000 },
      "expiresAt must be a time with its zone, ",
    ],
    [{ expiresIn: undefined, expiresAt: new Date(Number.NaN) }, "not an invalid date."],
  ])("names what is wrong and what is allowed: %j", (fields, message) => {
    expect(faultsOf(fields)).toContain(message);
  });

  it.each([
    [{ effect: {} }, "effect must be, for a rule, "],
    [{ effect: { kind: "blocked" } }, "effect.kind must be left out: the fields are mode, factor."],
    [{ effect: { mode: "mark" } }, 'effect.mode must be "enforce", "shadow" or "off", not "mark".'],
    [{ effect: { factor: "2" } }, 'effect.factor must be a number from 0 to 1000, not "2".'],
  ])("of a rule is named too: %j", (fields, message) => {
    expect(faultsOf(fields, { isForClient: false })).toContain(message);
  });

  it("shows only the start of the name of an unknown field", () => {
    const effect = { factor: 2, ["x".repeat(100_000)]: 1 };
    expect(faultsOf({ effect }, { isForClient: false }).length).toBeLessThan(200);
  });

  it("is listed together with all others", () => {
    const check = checkOverride({ rule: "x", effect: 1, reason: "", other: 1 }, OPTIONS);
    const faults = check.ok ? [] : check.faults.map(({ path, code }) => [path, code]);
    expect(faults).toEqual([
      ["other", "unknown-field"],
      ["rule", "not-allowed"],
      ["effect", "not-allowed"],
      ["expiresIn", "missing"],
      ["reason", "not-allowed"],
    ]);
  });

  it.each([[null], ["text"], [[]], [undefined]])("is found in %j", (input) => {
    const check = checkOverride(input, OPTIONS);
    expect(check.ok || describeFaults(check.faults)).toBe(
      "An override must be an object with the fields rule, effect, expiresIn, expiresAt, reason.",
    );
  });
});
