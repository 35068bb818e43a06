import { afterEach, describe, expect, it, vi } from "vitest";
import { MAX_STALLED } from "../../../src/stores/breaker.ts";
import type { Answer, Store, StoreError } from "../../../src/stores/store.ts";
import { counter } from "../../suite/counters.ts";
import { verdictOf } from "../../suite/verdict.ts";
import { withBreaker, withDeadline } from "../../suite/wrappers.ts";

const TIMEOUT_MS = 1000;
const ANSWER: Answer = { now: 0, admitted: true, tallies: [] };

/** Creates a breaker over a store. The test sends the store's answers, and time is virtual. */
function createCalls({ clients = 1 } = {}) {
  vi.useFakeTimers();
  const pending: ((answer: Answer) => void)[] = [];
  const inner: Store = {
    decide: () => [new Promise((resolve) => pending.push(resolve))],
    adjust: async () => [],
    reset: async () => {},
  };
  const changes: string[] = [];
  const store = withBreaker(withDeadline(inner, TIMEOUT_MS), {
    timeoutMs: TIMEOUT_MS,
    clients,
    onChange: (change, scope) => changes.push(`${scope} ${change}`),
  });
  const startedAt = Date.now();
  /** Sends a call, and records its outcome and time. */
  function send(identity: string = crypto.randomUUID()) {
    const call = { outcome: "waits", ms: Number.NaN };
    const record = (outcome: string) => {
      call.outcome = outcome;
      call.ms = Date.now() - startedAt;
    };
    verdictOf(store.decide([[counter({ identity })]])).then(
      () => record("done"),
      (error: StoreError) => record(error.failure),
    );
    return call;
  }
  return {
    changes,
    pending,
    send,
    wait: (ms: number) => vi.advanceTimersByTimeAsync(ms),
    answer: async (at: number) => {
      pending[at]?.(ANSWER);
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("calls that wait for a store", () => {
  it("go on waiting if the isolate was busy while their answers arrived", async () => {
    const at = createCalls();
    const calls = Array.from({ length: 200 }, () => at.send());
    vi.setSystemTime(Date.now() + 3 * TIMEOUT_MS);
    calls.push(at.send());
    await at.wait(TIMEOUT_MS / 10);
    expect(calls.filter(({ outcome }) => outcome !== "waits")).toEqual([]);
    for (const index of calls.keys()) await at.answer(index);
    expect(calls.filter(({ outcome }) => outcome !== "done")).toEqual([]);
    expect(at.changes).toEqual([]);
  });

  it("are at most sixteen until the deadline, if two hundred calls at once get no answer", async () => {
    const at = createCalls();
    const first = at.send();
    await at.answer(0);
    expect(first.outcome).toBe("done");
    const calls = Array.from({ length: 200 }, () => at.send());
    await at.wait(TIMEOUT_MS / 2);
    const after = calls.filter(({ outcome }) => outcome === "waits");
    expect(after).toHaveLength(MAX_STALLED);
    const next = at.send();
    await at.wait(0);
    expect(next.outcome).toBe("circuit-open");
    await at.wait(TIMEOUT_MS / 2);
    expect(after.every(({ outcome }) => outcome === "timeout")).toBe(true);
    expect(at.changes).toEqual(["store open"]);
  });

  it("fail at once when the breaker opens, even if they were sent just before", async () => {
    const at = createCalls();
    for (let call = 0; call < 5; call++) at.send();
    await at.wait(TIMEOUT_MS - 1);
    const next = at.send();
    await at.wait(TIMEOUT_MS / 10);
    expect(next).toMatchObject({ outcome: "circuit-open" });
    expect(next.ms).toBeLessThanOrEqual(TIMEOUT_MS * 1.1);
  });

  it("close the breaker when the store answers one of them that has already failed", async () => {
    const at = createCalls();
    for (let call = 0; call < 6; call++) at.send();
    await at.wait(TIMEOUT_MS - 1);
    const next = at.send();
    await at.wait(TIMEOUT_MS / 10);
    expect(next.outcome).toBe("circuit-open");
    await at.answer(6);
    expect(at.changes).toEqual(["store open", "store closed"]);
  });

  it.each([
    ["a burst that is answered one by one", 30],
    ["a burst whose first answer takes seven tenths of the deadline", 700],
  ])("are all answered in %s", async (_, everyMs) => {
    const at = createCalls();
    const calls = Array.from({ length: 200 }, () => at.send());
    await at.wait(everyMs);
    for (let call = 0; call < 200; call++) await at.answer(call);
    expect(calls.every(({ outcome }) => outcome === "done")).toBe(true);
  });

  it("are all answered by a store that was equally slow before", async () => {
    const at = createCalls();
    at.send();
    await at.wait(650);
    await at.answer(0);
    const calls = Array.from({ length: 100 }, () => at.send());
    await at.wait(690);
    for (let call = 1; call <= 100; call++) await at.answer(call);
    expect(calls.every(({ outcome }) => outcome === "done")).toBe(true);
  });

  it("keep waiting while the store answers new calls", async () => {
    const at = createCalls();
    at.send();
    await at.answer(0);
    const stuck = Array.from({ length: 40 }, () => at.send());
    const others = [];
    for (let round = 0; round < 9; round++) {
      others.push(at.send());
      await at.wait(100);
      await at.answer(at.pending.length - 1);
    }
    expect(others.every(({ outcome }) => outcome === "done")).toBe(true);
    expect(stuck.every(({ outcome }) => outcome === "waits")).toBe(true);
  });

  it("do not count for ever if their requests were cancelled", async () => {
    const at = createCalls();
    const hung = withBreaker(
      { decide: () => [new Promise(() => {})], adjust: async () => [], reset: async () => {} },
      { timeoutMs: TIMEOUT_MS },
    );
    for (let call = 0; call < 40; call++) void Promise.allSettled(hung.decide([[counter()]]));
    await at.wait(2 * TIMEOUT_MS + 1);
    const decided = verdictOf(hung.decide([[counter()]]));
    const outcome = decided.catch((error: StoreError) => error.failure);
    await at.wait(TIMEOUT_MS);
    expect(await Promise.race([outcome, "waits"])).toBe("waits");
  });

  it("of one client do not let other clients' calls fail if each client has its own object", async () => {
    const at = createCalls({ clients: 3 });
    at.send("well");
    await at.answer(0);
    for (let call = 0; call < 100; call++) at.send("slow");
    await at.wait(TIMEOUT_MS * 0.7);
    const [same, other] = [at.send("slow"), at.send("other")];
    await at.wait(0);
    expect([same.outcome, other.outcome]).toEqual(["circuit-open", "waits"]);
  });
});
