import { env } from "cloudflare:test";
import { afterEach, describe, expect, inject, it, vi } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { createWorker, READ_TOKEN } from "./support.ts";

afterEach(() => void vi.restoreAllMocks());

const redis = inject("redis");

const STORES: Record<string, [Record<string, unknown>, Partial<ConfigInput>]> = {
  memory: [{}, { store: "memory" }],
  "durable-object": [{ COUNTERS: env.COUNTERS }, { store: "durable-object" }],
  upstash: [
    { UPSTASH_REDIS_REST_URL: redis.restUrl, UPSTASH_REDIS_REST_TOKEN: redis.restToken },
    { store: "upstash" },
  ],
};

const RULES: ConfigInput["rules"] = [
  { name: "banned", limit: 2, window: "1h", ban: "1h", match: { paths: ["/banned"] } },
  { name: "leased", limit: 100, window: "1h", match: { paths: ["/leased"] } },
  {
    name: "quiet",
    limit: 2,
    window: "1h",
    mode: "shadow",
    ban: "1h",
    match: { paths: ["/quiet"] },
  },
];

/** Creates a Worker, and a function that explains a request of the same client. */
function createExplainer(store: string) {
  const [bindings, options] = STORES[store] ?? [{}, {}];
  const send = createWorker(
    {
      ...bindings,
      WEIR_ADMIN_READ_TOKEN: READ_TOKEN,
      WEIR_PREFIX: crypto.randomUUID().slice(0, 8),
    },
    { rules: RULES, ...options },
  );
  async function explain(path: string) {
    const response = await send("/_weir/api/explain", {
      token: READ_TOKEN,
      body: JSON.stringify({
        url: `https://api.example.com${path}`,
        headers: { "cf-connecting-ip": "203.0.113.1" },
      }),
      headers: { "content-type": "application/json" },
    });
    // biome-ignore lint/suspicious/noExplicitAny: each test reads other fields
    const explanation: any = await response.json();
    const { rules, outcome } = explanation;
    // biome-ignore lint/suspicious/noExplicitAny: see above
    return { outcome, explanation, rule: rules.find(({ applies }: any) => applies) };
  }
  return { send, explain };
}

describe.each(Object.keys(STORES))("explanations over the store %s", (store) => {
  it("take no quota, and begin no ban", async () => {
    const { send, explain } = createExplainer(store);
    for (const count of [0, 1]) {
      for (let repeat = 0; repeat < 3; repeat++) {
        const { outcome, rule } = await explain("/banned");
        expect(outcome).toBe("allowed");
        expect(rule.counters).toMatchObject([{ count, countAfter: count + 1 }]);
      }
      expect((await send("/banned")).status).toBe(200);
    }
    for (let repeat = 0; repeat < 3; repeat++) {
      const { outcome, rule, explanation } = await explain("/banned");
      expect(outcome).toBe("limited");
      expect(rule).toMatchObject({ banMs: 0, newBan: { isAtLeast: false }, exceeds: true });
      expect(explanation.response).toMatchObject({
        status: 429,
        headers: expect.arrayContaining([["retry-after", "3600"]]),
      });
    }
    expect((await send("/banned")).headers.get("retry-after")).toBe("3600");
    const { rule } = await explain("/banned");
    expect(rule.banMs).toBeGreaterThan(3_500_000);
    expect(rule).not.toHaveProperty("newBan");
  });

  it("do not count the quota that is leased to the isolate", async () => {
    const { send, explain } = createExplainer(store);
    for (let sent = 0; sent < 20; sent++) await send("/leased");
    for (let repeat = 0; repeat < 2; repeat++) {
      const { rule } = await explain("/leased");
      expect(rule.counters).toMatchObject([{ count: 20, countAfter: 21 }]);
    }
  });

  it("take no quota of a rule in shadow mode", async () => {
    const { send, explain } = createExplainer(store);
    for (let sent = 0; sent < 2; sent++) await send("/quiet");
    for (let repeat = 0; repeat < 3; repeat++) {
      const { outcome, rule } = await explain("/quiet");
      expect(outcome).toBe("allowed");
      expect(rule).toMatchObject({ exceeds: true, banMs: 0, newBan: {}, counters: [{ count: 2 }] });
    }
  });
});
