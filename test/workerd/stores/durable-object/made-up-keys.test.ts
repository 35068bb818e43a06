import { createExecutionContext, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { defineConfig, type RuleInput } from "../../../../src/config/index.ts";
import { weir } from "../../../../src/index.ts";

const LIMIT = 2;
const DENIALS = 20;

afterEach(async () => {
  vi.restoreAllMocks();
  await reset();
});

/**
 * Creates a Worker that counts in Durable Objects, with two rules. The client exceeds the limit of
 * the first rule, and makes up the key of the second rule.
 */
function workerWith(
  exceeded: Omit<RuleInput, "name" | "limit">,
  madeUp: Omit<RuleInput, "name" | "limit">,
) {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
  const window = "52w";
  const rules = [
    { name: "exceeded", ...exceeded, limit: LIMIT, window },
    { name: "made-up", ...madeUp, limit: 5, window },
  ] as RuleInput[];
  const { fetch } = weir(
    defineConfig({
      store: "durable-object",
      denialLog: 0,
      prefix: crypto.randomUUID(),
      rules,
      custom: { keys: { text: (request) => request.headers.get("x-text") } },
    }),
  );
  const objects = new Set<string>();
  const COUNTERS = {
    getByName: (name: string) => {
      objects.add(name);
      return env.COUNTERS.getByName(name);
    },
  };
  const send = async (value: string) => {
    const headers = { "cf-connecting-ip": "203.0.113.7", "x-own": "own", "x-text": value };
    const cookie = `sid=${value}`;
    const url = `https://api.example.com/users/${value}?q=${value}`;
    const request = new Request(url, { headers: { ...headers, "x-key": value, cookie } });
    return (await fetch(request as never, { COUNTERS }, createExecutionContext())).status;
  };
  return { send, objects };
}

describe("a client that exceeds a limit and makes up the key of another rule", () => {
  const match = { paths: ["/users/:id"] };

  it.each<[string, Omit<RuleInput, "name" | "limit">, Omit<RuleInput, "name" | "limit">]>([
    ["a header", { key: "ip" }, { key: "header:x-key" }],
    ["a header, or else the address", { key: "ip" }, { key: "header:x-key | ip" }],
    ["a cookie", { key: "ip" }, { key: "cookie:sid" }],
    ["a query parameter", { key: "ip" }, { key: "query:q" }],
    ["a path parameter", { key: "ip" }, { key: "param:id", match }],
    ["the path", { key: "ip" }, { key: "path" }],
    ["a function's value", { key: "ip" }, { key: "custom:text" }],
    ["a value beside the address", { key: "ip" }, { key: ["ip", "header:x-key"] }],
    ["a value of a rule with shards", { key: "ip" }, { key: "header:x-key", shards: 2 }],
    ["a value, with a ban of the address", { key: "ip", ban: "1h" }, { key: "header:x-key" }],
    ["a value, with shards of the address", { key: "ip", shards: 2 }, { key: "header:x-key" }],
    ["a header, while all clients exceed it", { key: "global" }, { key: "header:x-key" }],
    ["a value beside the exceeded one", { key: "header:x-own" }, { key: ["header:x-own", "path"] }],
  ])("creates no object when it is denied: %s", async (_, exceeded, madeUp) => {
    const { send, objects } = workerWith(exceeded, madeUp);
    let admitted = 0;
    // A request that draws a full shard is denied although another shard has quota left.
    for (let sent = 0; sent < 99 && admitted < LIMIT; sent++) {
      if ((await send("real")) === 200) admitted += 1;
    }
    expect(admitted).toBe(LIMIT);
    const known = objects.size;
    for (let denial = 0; denial < DENIALS; denial++) {
      expect(await send(`made-up-${denial}`)).toBe(429);
    }
    expect(objects.size).toBe(known);
  });
});
