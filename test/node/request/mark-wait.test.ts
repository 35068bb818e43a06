import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Mode } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import { type AppliedRule, collectWithinGrace } from "../../../src/request/rule-applier.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Collects rules that are ready after `readyMs`. @returns the collected rules, and the wait */
async function collect(...rules: [mode: Mode, readyMs: number][]) {
  const results = rules.map(
    ([mode, readyMs]) =>
      new Promise<AppliedRule[]>((resolve) => {
        const applied = { rule: { mode } as Rule, windows: [], identity: "" };
        setTimeout(() => resolve([applied]), readyMs);
      }),
  );
  const ofModes = rules.map(([mode]) => ({ mode }) as Rule);
  const collected = collectWithinGrace(ofModes, results);
  await vi.runAllTimersAsync();
  const { rules: all, waitedMs } = await collected;
  const applied = all.map(({ rule, pendingRules }) => (pendingRules ? "pending" : rule.mode));
  return { applied, waitedMs };
}

describe("the wait of enforced rules for rules with the mode mark", () => {
  it("is the time between the last enforced rule and the last rule with this mode", async () => {
    expect(await collect(["enforce", 10], ["mark", 500], ["enforce", 30])).toEqual({
      applied: ["enforce", "mark", "enforce"],
      waitedMs: 470,
    });
  });

  it("is 0 if the enforced rules take longer", async () => {
    expect((await collect(["mark", 10], ["enforce", 500])).waitedMs).toBe(0);
  });

  it("is the whole time if no rule is enforced", async () => {
    expect((await collect(["mark", 10], ["mark", 500])).waitedMs).toBe(500);
  });

  it("does not contain the wait for a rule in shadow mode", async () => {
    expect(await collect(["enforce", 10], ["shadow", 500], ["mark", 5])).toEqual({
      applied: ["enforce", "pending", "mark"],
      waitedMs: 0,
    });
  });
});
