import { describe, expect, it } from "vitest";
import type { ConfigInput, RuleInput } from "../../../src/config/index.ts";
import { ALL, decide, engineOf, logged } from "./requests.ts";

type Store = ConfigInput["store"];

/** Returns the calls and the commands of requests that arrive one second after the other. */
async function usageOf(store: Store, rules: readonly RuleInput[], requests: number) {
  const engine = engineOf({ ...(store && { store }), clock: "edge", rules }, ALL);
  const list = Array.from({ length: requests }, (_, index) => logged(index, { status: 404 }));
  decide(engine, list);
  return engine.usage;
}

const limit = { limit: 1, window: "1h" } as const;
const ONLY_OPEN = { limit: undefined, window: undefined, concurrent: 1 } as const;

// The numbers of commands and calls are those of docs/cost.md.
describe("the usage of a store", () => {
  it.each<[title: string, fields: Partial<RuleInput>, ...commands: number[]]>([
    ["one counter", {}, 3, 3],
    ["a ban", { ban: "1h" }, 4, 5, 3],
    ["capacity", { capacity: 2 }, 3, 3, 2],
    ["a limit of 0", { limit: 0 }, 0],
    ["shadow mode", { mode: "shadow" }, 3, 3],
    ["responses", { count: { status: [404] } }, 2 + 3, 2],
    ["shards", { limit: 2, shards: 2 }, 3],
    ["concurrent, with the return of the slot", ONLY_OPEN, 6, 6],
    ["concurrent in shadow mode", { ...ONLY_OPEN, mode: "shadow" }, 6],
  ])("is that of %s", async (_title, fields, ...commands) => {
    let before = { calls: 0, commands: 0 };
    const rule = { name: "a", ...limit, ...fields } as RuleInput;
    for (const [index, expected] of commands.entries()) {
      const usage = await usageOf("upstash", [rule], index + 1);
      expect(usage.commands - before.commands).toBe(expected);
      before = usage;
    }
  });

  it("is one call for all rules, and that of Upstash if no store is configured", async () => {
    const rules = [
      { name: "a", ...limit },
      { name: "b", ...limit, key: "global" },
      { name: "c", ...limit, mode: "shadow" },
    ] as const;
    expect(await usageOf(undefined, rules, 1)).toEqual({ calls: 1, commands: 1 + 3 * 2 });
    expect(await usageOf("memory", rules, 1)).toEqual({ calls: 1, commands: 0 });
  });

  it.each<[title: string, rules: RuleInput[], first: number, second: number]>([
    [
      "one object",
      [
        { name: "a", ...limit },
        { name: "b", ...limit },
      ],
      1,
      1,
    ],
    [
      "two objects",
      [
        { name: "a", ...limit },
        { name: "b", ...limit, key: "global" },
      ],
      3,
      2,
    ],
    [
      "an object that shadow rules share",
      [
        { name: "a", ...limit },
        { name: "b", ...limit, mode: "shadow" },
        { name: "c", ...limit, mode: "shadow", key: "global" },
      ],
      2,
      2,
    ],
    ["a charge after the response", [{ name: "a", ...limit, count: { status: [404] } }], 2, 1],
    ["shards", [{ name: "a", limit: 2, window: "1h", shards: 2 }], 1, 1],
    ["the return of a slot", [{ name: "a", concurrent: 1 }], 2, 2],
  ])("is the calls to Durable Objects, with %s", async (_title, rules, first, second) => {
    const one = await usageOf("durable-object", rules, 1);
    const two = await usageOf("durable-object", rules, 2);
    expect(one).toEqual({ calls: first, commands: 0 });
    expect(two.calls - one.calls).toBe(second);
  });
});
