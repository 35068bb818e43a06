import { afterEach, describe, expect, it, vi } from "vitest";
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

  it("fail at once when the breaker opens, even if they were sent just before", async () => {
    const at = createCalls();
    for (let call = 0; call < 5; call++) at.send();
    await at.wait(TIMEOUT_MS - 1);
    const next = at.send();
    await at.wait(TIMEOUT_MS / 10);
    expect(next).toMatchObject({ outcome: "abandoned" });
    expect(next.ms).toBeLessThanOrEqual(TIMEOUT_MS * 1.1);
  });

  it("close the breaker when the store answers one of them that has already failed", async () => {
    const at = createCalls();
    for (let call = 0; call < 6; call++) at.send();
    await at.wait(TIMEOUT_MS - 1);
    const next = at.send();
    await at.wait(TIMEOUT_MS / 10);
    expect(next.outcome).toBe("abandoned");
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
});
