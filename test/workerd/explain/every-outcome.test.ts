import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { resolveBindings } from "../../../src/config/bindings.ts";
import { type ConfigInput, defineConfig, type RuleInput } from "../../../src/config/index.ts";
import { explain } from "../../../src/explain/explain.ts";
import { settledVerdictsOf } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { LiveOverrides } from "../../../src/overrides/live-overrides.ts";
import type { Override } from "../../../src/overrides/override.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";

const NOW = Date.UTC(2026, 10, 25, 8, 0, 30);
const DESCRIBED = {
  method: "GET",
  url: "https://api.example.com/",
  headers: { "cf-connecting-ip": "203.0.113.7" },
};

/** The errors that nothing has caught. */
const uncaught: unknown[] = [];
const note = (event: Event) => {
  event.preventDefault();
  uncaught.push((event as PromiseRejectionEvent).reason);
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  addEventListener("unhandledrejection", note);
});
afterEach(() => {
  removeEventListener("unhandledrejection", note);
  vi.useRealTimers();
});

const WINDOW = { limit: 1, window: "1m" } as const;
const SETTLE = "header:x-cost";
const MODES = ["enforce", "shadow", "mark"] as const;

/** A rule of every kind that a decision handles in its own way. */
const KINDS: Readonly<Record<string, Partial<RuleInput>>> = {
  slots: { concurrent: 1 },
  "slots and a window": { ...WINDOW, concurrent: 1 },
  "a window": WINDOW,
  "a window with rollover": { ...WINDOW, capacity: 2 },
  "a ban": { ...WINDOW, ban: "5m" },
  "longer bans": { ...WINDOW, ban: ["1m", "5m"], concurrent: 1 },
  "a reserve": { ...WINDOW, limit: 5, cost: { reserve: 3, settle: SETTLE }, concurrent: 9 },
  "a cost of the response": { ...WINDOW, cost: SETTLE, concurrent: 2 },
  "a status": { ...WINDOW, count: { status: [401] }, concurrent: 2 },
  "a reserve for a status": { ...WINDOW, count: { status: [401], reserve: true } },
  shards: { limit: 2, window: "1m", shards: 2 },
  "a limit of 0": { limit: 0, window: "1m", concurrent: 1 },
  "a wait": { ...WINDOW, maxReserved: 1, wait: "40s", concurrent: 9 },
  "a wait for slots": { concurrent: 1, wait: "40s" },
  "a client that is known late": { concurrent: 1, key: "custom:late" },
};

/** Another rule, which is enforced. */
const OTHERS: Readonly<Record<string, Partial<RuleInput> | undefined>> = {
  "no other rule": undefined,
  "a rule that admits": { limit: 9, window: "1m", concurrent: 9 },
  "a rule that denies": WINDOW,
  "a rule that bans": { ...WINDOW, ban: "5m" },
  "a rule that denies all": { limit: 0, window: "1m" },
  "a rule without free slots": { concurrent: 1 },
  "a rule that blocks the client": { limit: 9, window: "1m" },
};

const STATES = ["unused", "used", "blocked"] as const;

function setUp(input: ConfigInput) {
  const config = defineConfig({ store: "memory", clock: "edge", denialLog: 0, ...input });
  const tasks: Promise<unknown>[] = [];
  const background = (task: Promise<unknown>) => void tasks.push(task);
  // A denial from memory counts under no rule that marks, and an explanation does not know what an isolate remembers.
  const { denialOf: _, ...store } = createMemoryStore();
  const limiter = new Limiter(config, store, { background });
  const read = vi.fn((applied: readonly AppliedRule[]) => limiter.clients.read(applied));
  const context = {
    config,
    bindings: resolveBindings(config, {}),
    read,
    custom: { env: {} as never, ctx: { waitUntil() {} } },
  };
  return { limiter, context, read, tasks };
}

function block(rule: string, client: string): Override {
  const fields = { reason: "abuse", by: "ops", setAt: NOW, expiresAt: NOW + 600_000 };
  return { rule, client, effect: { kind: "blocked" }, ...fields };
}

/** Explains a request, sends it, and compares the outcomes, the counts before and the counts after. */
async function compare(
  own: RuleInput,
  other: RuleInput | undefined,
  state: string,
  isBlocked: boolean,
) {
  const custom = { keys: { late: async () => "someone" } };
  const { limiter, context, read, tasks } = setUp({ rules: other ? [own, other] : [own], custom });
  const live = new LiveOverrides();
  const explained = () => explain(DESCRIBED, context, { live, byId: new Map() });
  const { rules } = await explained();
  const all = read.mock.lastCall?.[0] ?? [];
  // One after the other, so that no rule keeps another one from being charged.
  for (const applied of all) {
    if (state !== "used" && applied.rule.name === own.name) continue;
    // One request in each shard.
    for (const draw of [0, 0.9]) await limiter.decide([applied], { random: () => draw });
  }
  const clientOf = (name: string) => rules.find(({ rule }) => rule === name)?.client ?? "";
  const overrides = [
    ...(state === "blocked" ? [block(own.name, clientOf(own.name))] : []),
    ...(other && isBlocked ? [block(other.name, clientOf(other.name))] : []),
  ];
  live.update({ version: 1, all: overrides });
  await Promise.all(tasks);

  const before = await limiter.clients.read(all);
  const explanation = await explained();
  await new Promise((resolve) => setTimeout(resolve));
  expect(uncaught.splice(0)).toEqual([]);
  expect(await limiter.clients.read(all)).toEqual(before);

  const decision = await limiter.decide(live.clientsOf(all));
  expect(explanation.outcome).toBe(decision.outcome);
  if ("verdicts" in decision) await settledVerdictsOf(decision.verdicts);
  await Promise.all(tasks);
  const after = await limiter.clients.read(live.clientsOf(all));
  const counts = new Map(
    after.flatMap(({ counters }) => counters.map(({ counter, tally }) => [counter.key, tally])),
  );
  for (const { storedKey, shard, count, countAfter = count } of explanation.rules.flatMap(
    ({ counters = [] }) => counters,
  )) {
    if (shard !== undefined) continue;
    const [, tally] = [...counts].find(([key]) => storedKey.startsWith(key)) ?? [];
    expect([storedKey, countAfter]).toEqual([storedKey, tally?.count]);
  }
}

describe.each(MODES)("the explanation of a request under a rule with mode %s", (mode) => {
  // A rule that never denies has neither a ban nor a wait.
  const kinds = Object.entries(KINDS).filter(
    ([, { ban, wait }]) => mode !== "mark" || !(ban || wait),
  );

  describe.each(kinds)("and %s", (kind, fields) => {
    it.each(STATES)(
      "charges nothing, and shows what the request would store: %s",
      async (state) => {
        const own = { name: "own", mode, ...fields } as RuleInput;
        for (const [name, other] of Object.entries(OTHERS)) {
          const second = other && ({ name: "other", ...other } as RuleInput);
          const isBlocked = name.includes("blocks");
          await expect(
            compare(own, second, state, isBlocked),
            `${kind}, ${name}`,
          ).resolves.toBeUndefined();
        }
      },
    );
  });
});
