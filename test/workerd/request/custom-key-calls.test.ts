import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CustomKeys } from "../../../src/config/index.ts";
import { CustomCalls } from "../../../src/request/custom-calls.ts";

const TIMEOUT_MS = 100;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
});

afterEach(() => {
  vi.useRealTimers();
});

const later = <Value>(ms: number, value: Value) =>
  new Promise<Value>((resolve) => setTimeout(() => resolve(value), ms));
const rejectAfter = (ms: number) => later(ms, "").then(() => Promise.reject(new Error("secret")));

/** Creates the calls of one request, and a list of their failures. */
function callsOf(keys: CustomKeys) {
  const failures: string[] = [];
  const calls = new CustomCalls({
    functions: { keys: new Map(Object.entries(keys)) },
    request: new Request("https://api.example.com/") as never,
    context: { env: {} as never, ctx: { waitUntil() {} } },
    timeoutMs: TIMEOUT_MS,
    arrivedAt: Date.now(),
    onKeyFailure: (name, cause) => void failures.push(`${name} ${cause}`),
  });
  return { calls, failures };
}

describe("the functions of a request", () => {
  it.each<[string, number, string | undefined, string[]]>([
    ["is used if it comes a millisecond before the deadline", TIMEOUT_MS - 1, "gold", []],
    ["is absent if it comes a millisecond late", TIMEOUT_MS + 1, undefined, ["plan timeout"]],
  ])("a value %s", async (_, ms, expected, expectedFailures) => {
    const { calls, failures } = callsOf({ plan: () => later(ms, "gold") });
    const value = calls.computeKey("plan");
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS);
    expect(await value).toBe(expected);
    expect(failures).toEqual(expectedFailures);
    expect(calls.spentMs).toBe(Math.min(ms, TIMEOUT_MS));
  });

  it("leave no timer behind", async () => {
    const { calls } = callsOf({
      quick: () => later(10, "a"),
      failing: () => rejectAfter(20),
      throwing: () => {
        throw new Error("no");
      },
      plain: () => "a",
    });
    const all = ["quick", "failing", "throwing", "plain"].map((name) => calls.computeKey(name));
    await vi.advanceTimersByTimeAsync(20);
    expect(await Promise.all(all)).toEqual(["a", undefined, undefined, "a"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("need no timer if they return no promise", async () => {
    const { calls } = callsOf({ plan: () => "gold" });
    const value = calls.computeKey("plan");
    expect(vi.getTimerCount()).toBe(0);
    expect(await value).toBe("gold");
    expect(calls.spentMs).toBe(0);
  });

  it("share one deadline if they run at the same time", async () => {
    const { calls, failures } = callsOf({
      first: () => later(60, "a"),
      second: () => later(TIMEOUT_MS + 1, "b"),
    });
    const first = calls.computeKey("first");
    await vi.advanceTimersByTimeAsync(50);
    const second = calls.computeKey("second");
    await vi.advanceTimersByTimeAsync(10);
    expect(await first).toBe("a");
    await vi.advanceTimersByTimeAsync(40);
    expect(await second).toBeUndefined();
    expect(failures).toEqual(["second timeout"]);
    expect(calls.spentMs).toBe(TIMEOUT_MS);
  });

  it("share one deadline if they run one after another", async () => {
    const { calls, failures } = callsOf({
      first: () => later(60, "a"),
      second: () => later(41, "b"),
    });
    const first = calls.computeKey("first");
    await vi.advanceTimersByTimeAsync(60);
    expect(await first).toBe("a");
    const second = calls.computeKey("second");
    await vi.advanceTimersByTimeAsync(40);
    expect(await second).toBeUndefined();
    expect(failures).toEqual(["second timeout"]);
    expect(vi.getTimerCount()).toBe(1); // This is the timer of the function itself.
  });

  it("may still return a value after the deadline if they need no time for it", async () => {
    const { calls, failures } = callsOf({
      slow: () => new Promise<never>(() => {}),
      plain: () => "a",
      ready: async () => "b",
      pending: () => later(1, "c"),
    });
    const slow = calls.computeKey("slow");
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 1000);
    expect(await slow).toBeUndefined();
    expect(await calls.computeKey("plain")).toBe("a");
    expect(await calls.computeKey("ready")).toBe("b");
    const pending = calls.computeKey("pending");
    await vi.advanceTimersByTimeAsync(0);
    expect(await pending).toBeUndefined();
    expect(failures).toEqual(["slow timeout", "pending timeout"]);
    expect(calls.spentMs).toBe(TIMEOUT_MS);
  });

  it("cause no unhandled rejection if they reject after the deadline", async () => {
    const unhandled = vi.fn();
    addEventListener("unhandledrejection", unhandled);
    const { calls, failures } = callsOf({ plan: () => rejectAfter(TIMEOUT_MS + 1) });
    const value = calls.computeKey("plan");
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 2);
    vi.useRealTimers();
    await scheduler.wait(0);
    removeEventListener("unhandledrejection", unhandled);
    expect(await value).toBeUndefined();
    expect(failures).toEqual(["plan timeout"]);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it.each<[string, () => unknown, string[]]>([
    [
      "throws",
      () => {
        throw new Error("secret");
      },
      ["plan threw"],
    ],
    ["rejects", () => Promise.reject(new Error("secret")), ["plan threw"]],
    [
      "returns a promise whose then throws",
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: the function returns such an object.
        then() {
          throw new Error("secret");
        },
      }),
      ["plan threw"],
    ],
    ["returns a number", () => 5, []],
    ["returns a promise of an object", async () => ({ toString: () => "a" }), []],
    ["returns nothing", () => undefined, []],
  ])("have no value if a function %s", async (_, plan, expected) => {
    const { calls, failures } = callsOf({ plan } as CustomKeys);
    expect(await calls.computeKey("plan")).toBeUndefined();
    expect(failures).toEqual(expected);
  });

  it("have no value for a name without a function", async () => {
    const { calls, failures } = callsOf({});
    expect(await calls.computeKey("toString")).toBeUndefined();
    expect([failures, calls.spentMs]).toEqual([[], 0]);
  });

  it("keep the deadline if the clock is set back", async () => {
    const { calls, failures } = callsOf({
      first: () => later(10, "a"),
      second: () => later(TIMEOUT_MS + 1, "b"),
    });
    const first = calls.computeKey("first");
    await vi.advanceTimersByTimeAsync(10);
    await first;
    vi.setSystemTime(Date.now() - 3_600_000);
    const second = calls.computeKey("second");
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS);
    expect(await second).toBeUndefined();
    expect(failures).toEqual(["second timeout"]);
    expect(calls.spentMs).toBe(0);
  });
});
