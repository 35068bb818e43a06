import { createExecutionContext } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RuleInput } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";
import {
  type Namespace,
  passTime,
  useVirtualTime,
  withObjects,
} from "./stores/durable-object/objects-in-one.ts";

const TIMEOUT_MS = 2000;

beforeEach(() => {
  useVirtualTime();
  vi.spyOn(console, "error").mockReturnValue();
  vi.spyOn(console, "log").mockReturnValue();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const away = () => Promise.reject(new Error("away"));
const never = () => new Promise<never>(() => {});

/** Creates a Worker with these rules. Objects run `fail` when they decide a counter of the rule `a`. */
function workerWith(objects: Namespace, rules: RuleInput[], fail: () => Promise<never>) {
  const calls: string[] = [];
  const COUNTERS = {
    getByName(name: string) {
      calls.push(name);
      const object = objects.getByName(name);
      const run: typeof object.run = (entries, ...rest) => {
        const groups = entries.flatMap(({ group = [] }) => group);
        const isBroken = groups.some(({ key }) => key.includes(":a:"));
        return (isBroken ? fail() : object.run(entries, ...rest)) as never;
      };
      return { run };
    },
  };
  const config = { store: "durable-object", timeoutMs: TIMEOUT_MS, rules } as const;
  const { fetch } = weir({ ...config, prefix: crypto.randomUUID().slice(0, 8) });
  /** Sends a request. @returns `Weir-Over`, and the policies in the RateLimit field */
  async function send(fields: Record<string, string>) {
    let over: string | null = null;
    const headers = { "cf-connecting-ip": "203.0.113.9", ...fields };
    const answer = fetch(
      new Request("https://api.example.com/", { headers }) as never,
      { COUNTERS } as never,
      createExecutionContext(),
      async (admitted) => {
        over = admitted.headers.get("weir-over");
        return new Response("app");
      },
    );
    const response = await passTime(TIMEOUT_MS / 100, answer);
    const policies = (response.headers.get("ratelimit") ?? "").match(/[a-z]+(?=")/g) ?? [];
    return { over, policies };
  }
  return { send, calls };
}

const mark = (name: string, limit: number): RuleInput => {
  return { name, key: `header:x-${name}`, limit, window: "1h", mode: "mark" };
};

describe.each([
  ["fails", away],
  ["does not answer", never],
])("a rule with the mode mark whose object %s", (_, fail) => {
  it("leaves the other rules with this mode their marks, beside an enforced rule", () =>
    withObjects(async (objects) => {
      const site: RuleInput = { name: "site", key: "ip", limit: 10_000, window: "1h" };
      const { send } = workerWith(objects, [site, mark("a", 50), mark("b", 1)], fail);
      await send({ "x-a": "1", "x-b": "1" });
      // Leases admit the later requests under the enforced rule.
      for (let request = 0; request < 4; request++) {
        const { over, policies } = await send({ "x-b": "1", "x-a": "1" });
        expect({ over, policies }).toEqual({ over: "b", policies: ["site", "b"] });
      }
    }));

  it("leaves the other rules with this mode their marks, without an enforced rule", () =>
    withObjects(async (objects) => {
      const { send } = workerWith(objects, [mark("a", 50), mark("b", 1)], fail);
      expect(await send({ "x-a": "1", "x-b": "1" })).toEqual({ over: null, policies: ["b"] });
      expect(await send({ "x-a": "1", "x-b": "1" })).toEqual({ over: "b", policies: ["b"] });
    }));
});

describe("rules with the mode mark and the same key", () => {
  it("are decided in one call", () =>
    withObjects(async (objects) => {
      const [b, c] = [{ ...mark("b", 1), key: "header:x-c" } as RuleInput, mark("c", 50)];
      const { send, calls } = workerWith(objects, [b, c], away);
      expect(await send({ "x-c": "1" })).toEqual({ over: null, policies: ["b", "c"] });
      expect(calls).toHaveLength(1);
      expect(await send({ "x-c": "1" })).toEqual({ over: "b", policies: ["b", "c"] });
    }));
});
