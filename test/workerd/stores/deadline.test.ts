import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { inTime } from "../../../src/stores/deadline.ts";
import { StoreError } from "../../../src/stores/store.ts";

/** Creates a call that gets no answer until the test resolves or rejects it. */
function silent() {
  const { promise, resolve, reject } = Promise.withResolvers<never>();
  return { call: () => promise, resolve, reject };
}

describe("a call with a deadline", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it("fails with timeout at the deadline, and not before", async () => {
    const { call } = silent();
    const ended = vi.fn();
    const outcome = inTime(call, 250).catch((error) => error);
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
    const { call, resolve } = silent();
    const outcome = inTime(call, 250);
    await vi.advanceTimersByTimeAsync(249);
    resolve("the answer" as never);
    expect(await outcome).toBe("the answer");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("fails with the error of the store", async () => {
    const { call, reject } = silent();
    const outcome = inTime(call, 250);
    const failure = new StoreError("error-reply", "no");
    reject(failure);
    await expect(outcome).rejects.toBe(failure);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("ignores an answer or a failure after the deadline", async () => {
    for (const end of ["resolve", "reject"] as const) {
      const { call, ...ends } = silent();
      const outcome = inTime(call, 250).catch((error) => error);
      await vi.advanceTimersByTimeAsync(250);
      ends[end](new Error("too late") as never);
      expect(await outcome).toMatchObject({ failure: "timeout" });
    }
  });

  it("leaves out the time in which the isolate was busy, and says so at the deadline", async () => {
    const { call } = silent();
    const ended = vi.fn();
    inTime(call, 100).catch(ended);
    vi.setSystemTime(Date.now() + 300);
    await vi.advanceTimersByTimeAsync(10 + 99);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ failure: "timeout", wasBusy: true }),
    );
  });

  it("returns an answer that is read after the isolate was busy for longer than the deadline", async () => {
    const { call, resolve } = silent();
    const outcome = inTime(call, 100);
    vi.setSystemTime(Date.now() + 300);
    await vi.advanceTimersByTimeAsync(100);
    resolve("the answer" as never);
    expect(await outcome).toBe("the answer");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("ends after twenty timers, even if the isolate is always busy", async () => {
    const { call } = silent();
    const ended = vi.fn();
    inTime(call, 100).catch(ended);
    for (let timer = 1; timer <= 20; timer++) {
      expect(ended).not.toHaveBeenCalled();
      vi.setSystemTime(Date.now() + 300);
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it("blames the store if the isolate was busy for less than half of the deadline", async () => {
    const { call } = silent();
    const outcome = inTime(call, 250).catch((error) => error);
    vi.setSystemTime(Date.now() + 120);
    await vi.advanceTimersByTimeAsync(300);
    expect(await outcome).toMatchObject({ failure: "timeout", wasBusy: false });
  });

  it("has a deadline of its own in each call", async () => {
    const { call } = silent();
    const [first, second] = [vi.fn(), vi.fn()];
    inTime(call, 250).catch(first);
    await vi.advanceTimersByTimeAsync(100);
    inTime(call, 250).catch(second);
    await vi.advanceTimersByTimeAsync(150);
    expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 0]);
    await vi.advanceTimersByTimeAsync(100);
    expect(second).toHaveBeenCalledTimes(1);
  });
});
