import { describe, expect, it, vi } from "vitest";
import { FAILURES_TO_OPEN, PAUSE_MS } from "../../../src/stores/breaker.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Store, StoreError } from "../../../src/stores/store.ts";
import { counter } from "../../suite/counters.ts";
import { verdictOf } from "../../suite/verdict.ts";
import { withBreaker } from "../../suite/wrappers.ts";

const TIMEOUT_MS = 300;
const NOW = 1_700_000_100_000;
const COUNTER = counter();

/** Creates a breaker over a store. The test sets the time and the outcomes of calls. */
function breaker() {
  const state = { now: NOW, fails: false, calls: 0, changes: [] as string[] };
  const pending: PromiseWithResolvers<void>[] = [];
  let hangs = false;
  const memory = createMemoryStore();

  async function call<Result>(result: Promise<Result>): Promise<Result> {
    state.calls += 1;
    if (hangs) {
      const waiting = Promise.withResolvers<void>();
      pending.push(waiting);
      await waiting.promise;
    }
    if (state.fails) throw new StoreError("unreachable", "no connection");
    return result;
  }

  const inner: Store = {
    decide: (...given) => memory.decide(...given).map((answer) => call(answer)),
    adjust: (...given) => call(memory.adjust(...given)),
    reset: (...given) => call(memory.reset(...given)),
  };
  const store = withBreaker(inner, {
    timeoutMs: TIMEOUT_MS,
    onChange: (change) => state.changes.push(change),
    clock: () => state.now,
  });
  const outcome = (answer: Promise<unknown>) =>
    answer.then(
      () => "done",
      (error: StoreError) => error.failure,
    );
  const decide = () => outcome(verdictOf(store.decide([[COUNTER]], NOW)));
  return {
    state,
    store,
    decide,
    outcome,
    /** Begins a call, and returns functions that end it. */
    begin() {
      hangs = true;
      const answer = decide();
      hangs = false;
      const waiting = pending.at(-1) as PromiseWithResolvers<void>;
      return {
        succeed: () => end(waiting.resolve),
        fail: (options?: { wasBusy: boolean }) =>
          end(() => waiting.reject(new StoreError("timeout", "no decision in time", options))),
      };
      async function end(how: () => void) {
        how();
        return answer;
      }
    },
    async open() {
      state.fails = true;
      for (let failure = 0; failure < FAILURES_TO_OPEN; failure++) await decide();
    },
  };
}

/** Returns an object that gets the call's outcome when the call ends. */
function resultOf<Result>(call: Promise<Result>): { value?: Result } {
  const result: { value?: Result } = {};
  call.then((value) => {
    result.value = value;
  });
  return result;
}

describe("a breaker that is closed", () => {
  it("opens after five failures in a row, and then fails at once", async () => {
    const { state, decide } = breaker();
    state.fails = true;
    for (let failure = 1; failure <= 5; failure++) expect(await decide()).toBe("unreachable");
    expect(state.changes).toEqual(["open"]);
    expect(await decide()).toBe("circuit-open");
    expect(state.calls).toBe(5);
  });

  it("stays closed after four failures, a success and four more failures", async () => {
    const { state, decide } = breaker();
    for (const fails of [true, true, true, true, false, true, true, true, true]) {
      state.fails = fails;
      expect(await decide()).toBe(fails ? "unreachable" : "done");
    }
    expect(state.calls).toBe(9);
    expect(state.changes).toEqual([]);
  });

  it("stays closed if calls miss their deadlines because the isolate is busy", async () => {
    const { state, begin } = breaker();
    for (let call = 0; call < 4 * FAILURES_TO_OPEN; call++) {
      expect(await begin().fail({ wasBusy: true })).toBe("timeout");
    }
    expect(state.changes).toEqual([]);
    for (let call = 0; call < FAILURES_TO_OPEN; call++) await begin().fail();
    expect(state.changes).toEqual(["open"]);
  });

  it("opens once although many calls fail at the same time", async () => {
    const { state, begin } = breaker();
    const calls = Array.from({ length: 20 }, begin);
    for (const call of calls) expect(await call.fail()).toBe("timeout");
    expect(state.changes).toEqual(["open"]);
  });

  it("counts failures of adjustments and resets like those of decisions", async () => {
    const { state, store, decide, outcome } = breaker();
    state.fails = true;
    for (const call of [
      () => store.adjust([COUNTER], NOW),
      () => store.reset([COUNTER], NOW),
      () => store.adjust([COUNTER], NOW),
      () => verdictOf(store.decide([[COUNTER]], NOW)),
      () => store.reset([COUNTER], NOW),
    ]) {
      expect(await outcome(call())).toBe("unreachable");
    }
    expect(await outcome(store.adjust([COUNTER], NOW))).toBe("circuit-open");
    expect(await outcome(store.reset([COUNTER], NOW))).toBe("circuit-open");
    expect(await decide()).toBe("circuit-open");
    expect(state.calls).toBe(5);
  });
});

describe("a breaker that is open", () => {
  it("pauses for a second, lets one call through, and closes if the call succeeds", async () => {
    const { state, decide, open } = breaker();
    await open();
    state.fails = false;
    state.now += PAUSE_MS - 1;
    expect(await decide()).toBe("circuit-open");
    state.now += 1;
    expect(await decide()).toBe("done");
    expect(await decide()).toBe("done");
    expect(state.changes).toEqual(["open", "closed"]);
  });

  it("lets calls wait for a probe that has just begun, and makes them if it succeeds", async () => {
    const { state, begin, decide, open } = breaker();
    await open();
    state.fails = false;
    state.now += PAUSE_MS;
    const probe = begin();
    const waiting = [decide(), decide(), decide()];
    expect(state.calls).toBe(FAILURES_TO_OPEN + 1);
    state.now += 10;
    expect(await probe.succeed()).toBe("done");
    expect(await Promise.all(waiting)).toEqual(["done", "done", "done"]);
    expect(state.changes).toEqual(["open", "closed"]);
  });

  it("makes no call that waits for a probe which fails", async () => {
    const { state, begin, decide, open } = breaker();
    await open();
    state.now += PAUSE_MS;
    const probe = begin();
    const waiting = decide();
    expect(await probe.fail()).toBe("timeout");
    expect(await waiting).toBe("circuit-open");
    expect(state.calls).toBe(FAILURES_TO_OPEN + 1);
  });

  it("makes no call that waits for a probe longer than a quarter of the deadline", async () => {
    vi.useFakeTimers();
    try {
      const { state, begin, decide, open } = breaker();
      await open();
      state.now += PAUSE_MS;
      begin();
      const waiting = resultOf(decide());
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS / 4 - 1);
      expect(waiting.value).toBe(undefined);
      await vi.advanceTimersByTimeAsync(1);
      expect(waiting.value).toBe("circuit-open");
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("probes with one call at a time", async () => {
    const { state, begin, decide, open } = breaker();
    await open();
    state.fails = false;
    state.now += PAUSE_MS;
    const probe = begin();
    state.now += TIMEOUT_MS - 1;
    expect(await decide()).toBe("circuit-open");
    expect(await probe.succeed()).toBe("done");
    expect(await decide()).toBe("done");
  });

  it("pauses again after a failed probe, without a change of state", async () => {
    const { state, decide, open } = breaker();
    await open();
    state.now += PAUSE_MS;
    expect(await decide()).toBe("unreachable");
    state.now += PAUSE_MS - 1;
    expect(await decide()).toBe("circuit-open");
    state.now += 1;
    state.fails = false;
    expect(await decide()).toBe("done");
    expect(state.changes).toEqual(["open", "closed"]);
  });

  it("sends another probe if the first one never ends", async () => {
    const { state, begin, decide, open } = breaker();
    await open();
    state.fails = false;
    state.now += PAUSE_MS;
    begin();
    state.now += TIMEOUT_MS - 1;
    expect(await decide()).toBe("circuit-open");
    state.now += 1;
    expect(await decide()).toBe("done");
    expect(state.changes).toEqual(["open", "closed"]);
  });

  it("sends no second probe if a call fails that began before the breaker opened", async () => {
    const { state, begin, decide, open } = breaker();
    const [early, late] = [begin(), begin()];
    await open();
    state.now += PAUSE_MS;
    await early.fail();
    const probe = begin();
    await late.fail();
    state.now += TIMEOUT_MS - 1;
    expect(await decide()).toBe("circuit-open");
    state.fails = false;
    expect(await probe.succeed()).toBe("done");
  });

  it("closes if a call succeeds that began before the breaker opened", async () => {
    const { state, begin, decide, open } = breaker();
    const early = begin();
    await open();
    state.fails = false;
    expect(await early.succeed()).toBe("done");
    expect(await decide()).toBe("done");
    expect(state.changes).toEqual(["open", "closed"]);
  });

  it.each([
    ["a second", 1000],
    ["an hour", 3_600_000],
    ["ten years", 315_360_000_000],
  ])("stays open and soon sends a probe if the clock steps back by %s", async (_, backMs) => {
    const { state, decide, open } = breaker();
    await open();
    const opened = state.now;
    state.now -= backMs;
    const outcomes: string[] = [];
    // After the step back, the breaker sends its next probe after at most one pause, plus the time
    // after which a probe counts as lost.
    while (outcomes.at(-1) !== "unreachable" && state.now - (opened - backMs) <= 10_000) {
      outcomes.push(await decide());
      state.now += 100;
    }
    expect(outcomes.at(-1)).toBe("unreachable");
    expect(outcomes.length).toBeLessThanOrEqual((backMs <= 1000 ? 2 * PAUSE_MS : 100) / 100 + 2);
    expect(state.changes).toEqual(["open"]);
    expect(await decide()).toBe("circuit-open");
  });

  it("sends one probe at once if the clock leaps ahead", async () => {
    const { state, begin, decide, open } = breaker();
    await open();
    state.now += 315_360_000_000;
    const probe = begin();
    expect(await decide()).toBe("circuit-open");
    expect(await probe.fail()).toBe("timeout");
    expect(await decide()).toBe("circuit-open");
  });

  it("has the last failure in its message, for operators", async () => {
    const { store, open } = breaker();
    await open();
    await expect(verdictOf(store.decide([[COUNTER]], NOW))).rejects.toMatchObject({
      failure: "circuit-open",
      message: "not called after 5 failures in a row; the last failure was: unreachable",
    });
  });
});

it("a breaker opens in each outage of the store", async () => {
  const { state, decide, open } = breaker();
  for (let outage = 1; outage <= 3; outage++) {
    await open();
    expect(await decide()).toBe("circuit-open");
    state.fails = false;
    state.now += PAUSE_MS;
    expect(await decide()).toBe("done");
  }
  expect(state.changes).toEqual(["open", "closed", "open", "closed", "open", "closed"]);
});
