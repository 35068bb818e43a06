import { afterEach, describe, expect, inject, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { createUpstashStore } from "../../../../src/stores/upstash/upstash-store.ts";
import { counter } from "../../../suite/counters.ts";
import { verdictOf } from "../../../suite/verdict.ts";

const { restUrl: url, restToken: token } = inject("redis");

describe("the Upstash store", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const login = counter({ key: "weir:login:1m:someone", identity: "someone", limit: 5 });

  /** Creates a store whose calls get `answers` in turn. Returns it with the spy on `fetch`. */
  function storeAnsweredBy(...answers: (() => Response | Promise<Response>)[]) {
    const fetch = vi.spyOn(globalThis, "fetch").mockImplementation(async () => {
      return (answers[fetch.mock.calls.length - 1] ?? (() => Response.error()))();
    });
    return { store: createUpstashStore({ url, token, clock: "store", timeoutMs: 10_000 }), fetch };
  }

  const json =
    (body: unknown, status = 200) =>
    () =>
      Response.json(body, { status });
  const refusal = (error: string) => json({ error }, 400);

  it.each([
    ["a broken connection", () => Promise.reject(Error("Network connection lost.")), "unreachable"],
    [
      "a wrong token",
      json({ error: "WRONGPASS invalid or missing auth token" }, 401),
      "error-reply",
    ],
    [
      "an exhausted quota of the database",
      refusal("ERR max requests limit exceeded. Limit: 10000"),
      "error-reply",
    ],
    ["a failed script", refusal("ERR user_script:12: out of memory"), "error-reply"],
    ["a server error", json({ error: "internal" }, 500), "error-reply"],
    ["HTML", () => new Response("<h1>503</h1>", { status: 503 }), "invalid-reply"],
    ["text that is not JSON", () => new Response("OK"), "invalid-reply"],
    ["null", json(null), "invalid-reply"],
    ["a result of null", json({ result: null }), "invalid-reply"],
    ["too few integers", json({ result: [1_700_000_100_000, 1, 1, 60_000] }), "invalid-reply"],
    [
      "too many integers",
      json({ result: [1_700_000_100_000, 1, 1, 60_000, 0, 7] }),
      "invalid-reply",
    ],
    [
      "strings instead of integers",
      json({ result: ["1700000100000", "1", "1", "60000", "0"] }),
      "invalid-reply",
    ],
    ["a negative count", json({ result: [1_700_000_100_000, 1, -1, 60_000, 0] }), "invalid-reply"],
    ["a fraction", json({ result: [1_700_000_100_000, 1, 1.5, 60_000, 0] }), "invalid-reply"],
    [
      "a verdict other than 0 or 1",
      json({ result: [1_700_000_100_000, 2, 1, 1, 0] }),
      "invalid-reply",
    ],
    ["a window that has ended", json({ result: [1_700_000_100_000, 1, 1, 0, 0] }), "invalid-reply"],
    [
      "a window longer than the counter's",
      json({ result: [1_700_000_100_000, 1, 1, 60_001, 0] }),
      "invalid-reply",
    ],
    ["an empty object", json({}), "invalid-reply"],
  ])("throws a failure after %s, and calls only once", async (_, answer, failure) => {
    const { store, fetch } = storeAnsweredBy(answer);
    await expect(verdictOf(store.decide([[login]]))).rejects.toMatchObject({
      name: "StoreError",
      failure,
    });
    expect(fetch).toHaveBeenCalledTimes(1);
  });

  it("leaves no timer behind", async () => {
    vi.useFakeTimers();
    const store = createUpstashStore({ url, token, clock: "store", timeoutMs: 10_000 });
    expect((await verdictOf(store.decide([[login]]))).groups).toMatchObject([{ admitted: true }]);
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  it("aborts a call that hangs, and does not repeat it", async () => {
    const fetch = vi.spyOn(globalThis, "fetch").mockImplementation((_, init) => {
      const { signal } = init as { signal: AbortSignal };
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    });
    const store = createUpstashStore({ url, token, clock: "store", timeoutMs: 5 });
    await expect(verdictOf(store.decide([[login]]))).rejects.toMatchObject({ failure: "timeout" });
    expect(fetch).toHaveBeenCalledTimes(1);
  });

  it("sends EVAL once after NOSCRIPT, and does not repeat EVAL", async () => {
    const noScript = refusal("NOSCRIPT No matching script. Please use EVAL.");
    const { store, fetch } = storeAnsweredBy(noScript, noScript);
    await expect(verdictOf(store.decide([[login]]))).rejects.toMatchObject({
      failure: "error-reply",
    });
    expect(fetch.mock.calls.map(([, init]) => JSON.parse(String(init?.body))[0])).toEqual([
      "evalsha",
      "eval",
    ]);
  });

  it("aborts EVAL after NOSCRIPT as early as it would have aborted a single call", async () => {
    vi.useFakeTimers();
    try {
      const fetch = vi.spyOn(globalThis, "fetch");
      const times: number[] = [];
      fetch.mockImplementationOnce(async () => {
        times.push(Date.now());
        await new Promise((resolve) => setTimeout(resolve, 1900));
        return refusal("NOSCRIPT No matching script. Please use EVAL.")();
      });
      fetch.mockImplementationOnce((_, init) => {
        const { signal } = init as { signal: AbortSignal };
        signal.addEventListener("abort", () => times.push(Date.now()));
        return new Promise(() => {});
      });
      const store = createUpstashStore({ url, token, clock: "edge", timeoutMs: 1000 });
      verdictOf(store.decide([[login]])).catch(() => {});
      // The digest of the script is computed in real time.
      await vi.waitFor(() => expect(times).toHaveLength(1));
      await vi.advanceTimersByTimeAsync(5000);
      const [sentAt = 0, abortedAt = 0] = times;
      expect(fetch).toHaveBeenCalledTimes(2);
      expect(abortedAt - sentAt).toBeGreaterThan(1900);
      expect(abortedAt - sentAt).toBeLessThan(2050);
    } finally {
      vi.useRealTimers();
    }
  });

  it("does not treat an error as NOSCRIPT if only a key contains this text", async () => {
    const { store, fetch } = storeAnsweredBy(refusal("ERR syntax error"));
    const odd = counter({ key: "NOSCRIPT:login:1m:someone" });
    await expect(verdictOf(store.decide([[odd]]))).rejects.toMatchObject({
      failure: "error-reply",
    });
    expect(fetch).toHaveBeenCalledTimes(1);
  });

  it("has the message of Redis in its error, without the command and its keys", async () => {
    const quoting = `ERR unknown command 'EVALSHA', with args beginning with: '${login.key}'`;
    const { store } = storeAnsweredBy(refusal(quoting));
    const error = await verdictOf(store.decide([[login]])).catch((thrown: Error) => thrown);
    expect((error as Error).message).toBe(
      "ERR unknown command 'EVALSHA', with args beginning with: 'weir:login:1m:…'",
    );
    expect(String((error as Error).stack)).not.toContain(login.identity);
  });

  it("replaces the identities of shards and of the client in its error", async () => {
    const [one, other] = [1, 2].map((number) => {
      const identity = `someone#${number}`;
      const shard = { client: "someone", number };
      return counter({ key: `weir:llm:1m:${identity}`, identity, shard });
    }) as [Demand, Demand];
    const { store } = storeAnsweredBy(refusal(`ERR no way: '${one.key}' '${other.key}' 'someone'`));
    const error = await verdictOf(store.decide([[one, other]])).catch((thrown: Error) => thrown);
    expect((error as Error).message).toBe("ERR no way: 'weir:llm:1m:…' 'weir:llm:1m:…' '…'");
  });

  it("declares all its keys to Upstash only if the clock is edge", async () => {
    const noScript = refusal("NOSCRIPT No matching script. Please use EVAL.");
    for (const [clock, first] of [
      ["edge", "#!lua flags=allow-key-locking"],
      ["store", undefined],
    ] as const) {
      const { fetch } = storeAnsweredBy(noScript, noScript);
      const store = createUpstashStore({ url, token, clock, timeoutMs: 10_000 });
      await verdictOf(store.decide([[login]])).catch(() => undefined);
      const [, script] = JSON.parse(String(fetch.mock.calls[1]?.[1]?.body));
      expect(/^#!.*/.exec(script)?.[0]).toBe(first);
      vi.restoreAllMocks();
    }
  });
});
