import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { withDeadline } from "../../../src/stores/deadline.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import type { Store } from "../../../src/stores/store.ts";
import { StoreError } from "../../../src/stores/store-error.ts";
import { counter } from "../../suite/counters.ts";

const calls: [string, (store: Store) => Promise<unknown>][] = [
  ["a decision", (store) => store.decide([[counter()]])],
  ["an adjustment", (store) => store.adjust([counter()])],
  ["a reset", (store) => store.reset([counter()])],
];

/** Creates a store. Its calls get no answer until the test resolves or rejects them. */
function silent() {
  const { promise, resolve, reject } = Promise.withResolvers<never>();
  const answer = () => promise;
  return { store: { decide: answer, adjust: answer, reset: answer }, resolve, reject };
}

describe.each(calls)("%s with a deadline", (_, call) => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it("fails with timeout at the deadline, and not before", async () => {
    const { store } = silent();
    const ended = vi.fn();
    const outcome = call(withDeadline(store, 250)).catch((error) => error);
    outcome.then(ended);
    await vi.advanceTimersByTimeAsync(249);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    const error = await outcome;
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ failure: "timeout", message: "no decision within 250 ms" });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("returns an answer that arrives a millisecond before the deadline", async () => {
    const { store, resolve } = silent();
    const outcome = call(withDeadline(store, 250));
    await vi.advanceTimersByTimeAsync(249);
    resolve("the answer" as never);
    expect(await outcome).toBe("the answer");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("fails with the error of the store", async () => {
    const { store, reject } = silent();
    const outcome = call(withDeadline(store, 250));
    const failure = new StoreError("error-reply", "no");
    reject(failure);
    await expect(outcome).rejects.toBe(failure);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("ignores an answer or a failure after the deadline", async () => {
    for (const end of ["resolve", "reject"] as const) {
      const { store, ...ends } = silent();
      const outcome = call(withDeadline(store, 250)).catch((error) => error);
      await vi.advanceTimersByTimeAsync(250);
      ends[end](new Error("too late") as never);
      expect(await outcome).toMatchObject({ failure: "timeout" });
    }
  });

  it("leaves out the time in which the isolate was busy, and says so at the deadline", async () => {
    const { store } = silent();
    const ended = vi.fn();
    call(withDeadline(store, 100)).catch(ended);
    vi.setSystemTime(Date.now() + 300);
    await vi.advanceTimersByTimeAsync(10 + 99);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ failure: "timeout", wasBusy: true }),
    );
  });

  it("returns an answer that is read after the isolate was busy for longer than the deadline", async () => {
    const { store, resolve } = silent();
    const outcome = call(withDeadline(store, 100));
    vi.setSystemTime(Date.now() + 300);
    await vi.advanceTimersByTimeAsync(100);
    resolve("the answer" as never);
    expect(await outcome).toBe("the answer");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("ends after twenty timers, even if the isolate is always busy", async () => {
    const { store } = silent();
    const ended = vi.fn();
    call(withDeadline(store, 100)).catch(ended);
    for (let timer = 1; timer <= 20; timer++) {
      expect(ended).not.toHaveBeenCalled();
      vi.setSystemTime(Date.now() + 300);
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it("blames the store if the isolate was busy for less than half of the deadline", async () => {
    const { store } = silent();
    const outcome = call(withDeadline(store, 250)).catch((error) => error);
    vi.setSystemTime(Date.now() + 120);
    await vi.advanceTimersByTimeAsync(300);
    expect(await outcome).toMatchObject({ failure: "timeout", wasBusy: false });
  });

  it("has a deadline of its own in each call", async () => {
    const { store } = silent();
    const limited = withDeadline(store, 250);
    const [first, second] = [vi.fn(), vi.fn()];
    call(limited).catch(first);
    await vi.advanceTimersByTimeAsync(100);
    call(limited).catch(second);
    await vi.advanceTimersByTimeAsync(150);
    expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 0]);
    await vi.advanceTimersByTimeAsync(100);
    expect(second).toHaveBeenCalledTimes(1);
  });
});

describe("a store with a deadline", () => {
  it("gets the same arguments", async () => {
    const memory = createMemoryStore();
    const decided = vi.spyOn(memory, "decide");
    const adjusted = vi.spyOn(memory, "adjust");
    const wasReset = vi.spyOn(memory, "reset");
    const limited = withDeadline(memory, 1000);
    const quota = counter();
    const unused = [{ counter: quota, quota: 1, window: 5 }];
    await limited.decide([[quota]], 7, unused);
    await limited.adjust([quota], 8);
    await limited.reset([quota], 9);
    expect(decided).toHaveBeenCalledExactlyOnceWith([[quota]], 7, unused);
    expect(adjusted).toHaveBeenCalledExactlyOnceWith([quota], 8);
    expect(wasReset).toHaveBeenCalledExactlyOnceWith([quota], 9);
  });
});
