import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { chooseRules } from "../../../cli/replay/choose-rules.ts";
import { ReplayEngine } from "../../../cli/replay/engine.ts";
import {
  type GroupAnswer,
  groupsOf,
  isEnforcedGroup,
  keyedCountersOf,
  type ReplayedRequest,
  replayedRequestOf,
  responseCountersOf,
} from "../../../cli/replay/groups.ts";
import { evenShares, LogRuleApplier } from "../../../cli/replay/rule-applier.ts";
import { config as anyConfig } from "../../../fuzz/arbitraries/config.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import type { Config } from "../../../src/config/schema.ts";
import { certainTalliesOf } from "../../../src/limiter/blocked.ts";
import { countersOf } from "../../../src/limiter/counters.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { propertyRuns, runs } from "../../suite/runs.ts";
import { verdictOf } from "../../suite/verdict.ts";
import { ALL, decide, logged } from "./requests.ts";

const requests: fc.Arbitrary<LogRequest[]> = fc
  .array(
    fc.record({
      gap: fc.constantFrom(0, 0, 0.2, 1, 7, 61),
      method: fc.constantFrom("GET", "HEAD", "POST", "OPTIONS"),
      target: fc.constantFrom("/", "/login", "/v1/a", "/v1/a/..", "/users/7?a=1", "/u/42"),
      host: fc.constantFrom("api.example.com", "example.com"),
      ip: fc.constantFrom("203.0.113.1", "203.0.113.2", "2001:db8::1", "2001:db8::2"),
      status: fc.constantFrom(200, 401, undefined),
      headers: fc.constantFrom(
        new Map<string, string>(),
        new Map([
          ["a", "1"],
          ["cookie", "sid=2"],
        ]),
      ),
      responseHeaders: fc.constantFrom(undefined, new Map([["x-cost", "3"]])),
      cf: fc.constantFrom(undefined, { country: "DE", asn: 64_496 }),
    }),
    { minLength: 20, maxLength: 120 },
  )
  .map((list) => {
    let second = 0;
    return list.map(({ gap, ...fields }) => {
      second += gap;
      return logged(second, fields);
    });
  });

function validated(input: object): Config | undefined {
  try {
    return defineConfig(input as ConfigInput);
  } catch {
    return undefined;
  }
}

/** Decides by the store in memory, which has none of the engine's shortcuts. */
async function referenceOf(
  config: Config,
  list: readonly LogRequest[],
): Promise<ReplayedRequest[]> {
  const { rules } = chooseRules(config, ALL, true);
  const applier = new LogRuleApplier(config, rules, ALL, true, evenShares());
  const store = createMemoryStore(Number.POSITIVE_INFINITY);
  const decided: ReplayedRequest[] = [];
  for (const request of list) {
    const { at } = request;
    const applied = applier.apply(request) ?? [];
    if (applied.length === 0) {
      decided.push({ request, outcome: "unmatched", verdicts: [] });
      continue;
    }
    const groups = groupsOf(applied);
    const enforced = keyedCountersOf(groups.filter(isEnforcedGroup).flat());
    const certain = certainTalliesOf(enforced, at);
    const called = groups.filter((group) => !certain || group[0]?.rule.mode === "shadow");
    const storeGroups = called.map((group) => countersOf(keyedCountersOf(group)));
    const { groups: all } = await verdictOf(store.decide(storeGroups, at));
    const answers = groups.map((group) =>
      isEnforcedGroup(group) && certain
        ? { admitted: false, tallies: certain }
        : (all[called.indexOf(group)] as GroupAnswer),
    );
    const replayed = replayedRequestOf(request, groups, answers);
    if (replayed.outcome === "allowed") {
      for (const counters of responseCountersOf(request, groups, answers, config.prefix)) {
        await store.adjust(counters, at);
      }
    }
    decided.push(replayed);
  }
  return decided;
}

describe("the exact engine", () => {
  it("decides under random rules like the store in memory", async () => {
    let replays = 0;
    const outcomes = new Set<string>();
    await fc.assert(
      fc.asyncProperty(anyConfig, anyConfig, requests, async (one, other, list) => {
        const rules = [one, other].flatMap(({ rules }) => rules);
        const config = validated({ ...one, rules }) ?? validated(one) ?? validated(other);
        if (!config) return;
        replays++;
        const decided = decide(new ReplayEngine(config, ALL, true), list);
        expect(decided).toEqual(await referenceOf(config, list));
        for (const { outcome } of decided) outcomes.add(outcome);
      }),
      propertyRuns(3000),
    );
    expect(replays).toBeGreaterThan(runs(1000));
    expect([...outcomes].sort()).toEqual(["allowed", "limited", "unmatched"]);
  });
});
