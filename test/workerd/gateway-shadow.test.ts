import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ConfigInput, CustomKeys } from "../../src/config/index.ts";
import { CounterObject, weir } from "../../src/index.ts";
import { PATIENCE } from "../patience.ts";

// No deadline ends because the machine is slow.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const enforced = { name: "enforced", limit: 2, window: "52w" } as const;
const shadowed = {
  name: "trial",
  key: "custom:user",
  limit: 1,
  window: "52w",
  mode: "shadow",
} as const;

/** The longest deadline, in milliseconds. */
const TIMEOUT_MS = 30_000;
/** The number of requests that are sent at the same time. */
const REQUESTS = 12;
const DENIED_TWICE = Array(2).fill({ weir: "denied", mode: "shadow", policy: "trial" });

/**
 * Creates a Worker that counts in Durable Objects. Returns a function that sends a request, and the
 * list of logged lines, except those about denials by enforced rules.
 */
function worker(rules: ConfigInput["rules"], keys: CustomKeys) {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
  const lines: Record<string, unknown>[] = [];
  for (const level of ["log", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line) => {
      const parsed = JSON.parse(line);
      // This Worker has no control object, but an upload of an earlier file may still be on its way.
      if (parsed.mode !== "enforce" && parsed.weir !== "control-failed") lines.push(parsed);
    });
  }
  const prefix = crypto.randomUUID();
  const { fetch } = weir({
    store: "durable-object",
    prefix,
    denialLog: 1000,
    timeoutMs: TIMEOUT_MS,
    rules,
    custom: { keys },
  });
  async function send() {
    const ctx = createExecutionContext();
    const request = new Request("https://api.example.com/", {
      headers: { "cf-connecting-ip": "203.0.113.7" },
    });
    const answer = fetch(request as never, { COUNTERS: env.COUNTERS }, ctx);
    // Faked time advances during this wait, and not faster than real time.
    const response = await vi.waitFor(() => answer, { ...PATIENCE, interval: 5 });
    return { response, ctx };
  }
  return { send, lines };
}

describe("the key function of a rule in shadow mode", () => {
  it("neither delays nor fails an enforced rule if it never returns", async () => {
    const keys = { user: () => new Promise<never>(() => {}) };
    const { send, lines } = worker([enforced, shadowed], keys);
    const statuses = [];
    for (let request = 0; request < 3; request++) statuses.push((await send()).response.status);
    expect(statuses).toEqual([200, 200, 429]);
    expect(lines).toEqual([]);
    // After the deadline, the rule in shadow mode counts the address.
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS);
    const failed = { weir: "custom-key-failed", key: "user", cause: "timeout" };
    // A late line of another file's test, which this clock has set off, is none of this rule.
    const own = () =>
      lines.filter((line) => (line as { weir?: string }).weir !== "cost-unreadable");
    await vi.waitFor(() => expect(own()).toMatchObject([failed, ...DENIED_TWICE]), PATIENCE);
  });

  it("may return late, and the rule is decided afterwards", async () => {
    let answer = (_: string) => {};
    const { send, lines } = worker([enforced, shadowed], {
      user: () => new Promise<string>((resolve) => (answer = resolve)),
    });
    for (const status of [200, 200, 429]) {
      const { response, ctx } = await send();
      expect(response.status).toBe(status);
      answer("alice");
      await waitOnExecutionContext(ctx);
    }
    await vi.waitFor(() => expect(lines).toMatchObject(DENIED_TWICE), PATIENCE);
  });
});

describe("a rule in shadow mode with another key", () => {
  it("is decided in its own object and logged, although no response waits for it", async () => {
    const { send, lines } = worker([enforced, shadowed], { user: () => "alice" });
    for (const status of [200, 200, 429]) {
      const { response, ctx } = await send();
      expect(response.status).toBe(status);
      await waitOnExecutionContext(ctx);
    }
    await vi.waitFor(() => expect(lines).toMatchObject(DENIED_TWICE), PATIENCE);
  });
});

describe("a rule that is charged by the response", () => {
  it("is charged even if the decision took most of the deadline", async () => {
    const counted = { ...enforced, key: "custom:user", count: { status: [200] } };
    const user = async () => {
      await vi.advanceTimersByTimeAsync(0.6 * TIMEOUT_MS);
      return "alice";
    };
    const { send, lines } = worker([counted], { user });
    for (const status of [200, 200, 429]) {
      const { response, ctx } = await send();
      expect(response.status).toBe(status);
      await waitOnExecutionContext(ctx);
    }
    expect(lines).toEqual([]);
  });
});

describe("a rule in shadow mode that is charged by the response", () => {
  it("does not affect the decision of the enforced rules if its object fails", async () => {
    const counted = { ...shadowed, key: "global", count: { status: [200] } } as const;
    const closed = { ...enforced, limit: 100, onError: "closed" } as const;
    const { send } = worker([closed, counted], {});
    const { run } = CounterObject.prototype;
    let broken = 0;
    vi.spyOn(CounterObject.prototype, "run").mockImplementation(function (
      this: CounterObject,
      entries,
    ) {
      if (entries.every(({ adjusted }) => adjusted.length === 0)) return run.call(this, entries);
      broken += 1;
      throw new Error("broken");
    });
    // The origin answers all requests of a round at the same time. So all charges fail in a row,
    // with no successful call between them.
    let arrived = 0;
    let { promise: all, resolve: answerAll } = Promise.withResolvers<void>();
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => {
      arrived += 1;
      if (arrived === REQUESTS) answerAll();
      await all;
      return new Response();
    });
    for (let round = 0; round < 3; round++) {
      arrived = 0;
      ({ promise: all, resolve: answerAll } = Promise.withResolvers<void>());
      const answers = await Promise.all(Array.from({ length: REQUESTS }, send));
      expect(new Set(answers.map(({ response }) => response.status))).toEqual(new Set([200]));
      for (const { ctx } of answers) await waitOnExecutionContext(ctx);
    }
    expect(broken).toBeGreaterThan(0);
  });
});
