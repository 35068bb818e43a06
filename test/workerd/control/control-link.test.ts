import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ControlLink } from "../../../src/control/control-link.ts";
import { LiveOverrides } from "../../../src/overrides/live-overrides.ts";
import type { Override } from "../../../src/overrides/override.ts";
import { Recorder } from "../../../src/statistics/recorder.ts";
import { type Behaviour, FakeControl } from "./fake-control.ts";

const HOUR = 3_600_000;

/** The tasks that still run, as waitUntil of an isolate would hold them. */
const running = new Set<Promise<unknown>>();
let control: FakeControl;
let failures: string[];

beforeEach(() => {
  vi.useFakeTimers({ now: 1_800_000_000_000 });
  running.clear();
  control = new FakeControl();
  failures = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function createLink({ timeoutMs = 1000, random = 0.5 } = {}) {
  const background = (task: Promise<unknown>) => {
    running.add(task);
    void task.finally(() => running.delete(task));
  };
  const recorder = new Recorder({ background });
  const link = new ControlLink(
    {
      upload: (sums) => control.upload(sums),
      timeoutMs,
      random: () => random,
      background,
      onFailure: (task, cause) => failures.push(`${task}: ${cause}`),
    },
    new LiveOverrides(),
    recorder,
  );
  return {
    link,
    recorder,
    request: () => link.record([], undefined, Date.now()),
    load: () => link.loadIfStale(Date.now()),
  };
}

/** Calls that upload sums. */
const uploads = () => control.calls.filter(({ minutes }) => minutes.length > 0);

describe("sums", () => {
  it("are uploaded although no further request comes", async () => {
    const { request } = createLink();
    request();
    await vi.advanceTimersByTimeAsync(5000);
    expect(control.requests).toBe(1);
    expect(running.size).toBe(0);
  });

  it("are uploaded at most once in five seconds while requests come all the time", async () => {
    const { request } = createLink();
    for (let sent = 0; sent < 600; sent++) {
      request();
      await vi.advanceTimersByTimeAsync(100);
    }
    await vi.advanceTimersByTimeAsync(5000);
    expect(control.requests).toBe(600);
    expect(uploads().length).toBeGreaterThanOrEqual(12);
    expect(uploads().length).toBeLessThanOrEqual(13);
  });

  it("are uploaded at most five seconds later, so that a killed isolate loses no older ones", async () => {
    const { request } = createLink({ random: 0.999 });
    const sentAt: number[] = [];
    for (let sent = 0; sent < 400; sent++) {
      // Requests come in bursts with pauses of different lengths.
      if (sent % 7 < 4) {
        request();
        sentAt.push(Date.now());
      }
      await vi.advanceTimersByTimeAsync(sent % 50 === 0 ? 3700 : 130);
      const due = sentAt.filter((at) => at <= Date.now() - 5000).length;
      expect(control.requests).toBeGreaterThanOrEqual(due);
    }
  });

  it("of many isolates that start at once, or that were idle, are uploaded at different times", async () => {
    const isolates = Array.from({ length: 200 }, (_, i) => createLink({ random: i / 200 }));
    const callsInEachSecond = async () => {
      for (const { request } of isolates) request();
      const counts: number[] = [];
      for (let second = 0; second < 5; second++) {
        const before = uploads().length;
        await vi.advanceTimersByTimeAsync(1000);
        counts.push(uploads().length - before);
      }
      return counts;
    };
    const spread = [0, 50, 50, 50, 50].map((count) => expect.closeTo(count, -1));
    expect(await callsInEachSecond()).toEqual(spread);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await callsInEachSecond()).toEqual(spread);
    // Busy isolates keep the interval, and so stay spread over the seconds.
    expect(await callsInEachSecond()).toEqual(spread);
  });

  it("that are added while an upload runs belong to the next one", async () => {
    const { request } = createLink({ random: 0 });
    control.delayMs = 3000;
    request();
    await vi.advanceTimersByTimeAsync(2000);
    expect(control.calls).toHaveLength(1);
    request();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(control.requests).toBe(2);
    expect(control.calls.map(({ sequence }) => sequence)).toEqual([1, 2]);
  });

  it.each<Behaviour>(["refuse", "hang", "error-after", "missing"])(
    "are all added, and none twice, after an object has behaved like this for a minute: %s",
    async (behaviour) => {
      const { request } = createLink();
      control.behaviour = behaviour;
      for (let sent = 0; sent < 60; sent++) {
        request();
        await vi.advanceTimersByTimeAsync(1000);
      }
      control.behaviour = "answer";
      await vi.advanceTimersByTimeAsync(200_000);
      expect(control.requests).toBe(60);
      expect(failures.length).toBeGreaterThan(2);
      expect(failures.join()).not.toContain("203.0.113.7");
      expect(running.size).toBe(0);
    },
  );

  it("are repeated with the same number, source and content", async () => {
    const { request } = createLink();
    control.behaviour = "error-after";
    request();
    await vi.advanceTimersByTimeAsync(10_000);
    request();
    await vi.advanceTimersByTimeAsync(60_000);
    const [first, ...others] = control.calls;
    expect(others.length).toBeGreaterThan(0);
    for (const other of others) expect(other).toEqual(first);
  });

  it("cause fewer calls while an object fails, and take bounded memory in an hour of failures", async () => {
    const { request, recorder } = createLink();
    control.behaviour = "refuse";
    for (let sent = 0; sent < 360; sent++) {
      request();
      await vi.advanceTimersByTimeAsync(10_000);
    }
    expect(control.calls.length).toBeLessThan(60);
    const { minutes } = recorder.take();
    expect(minutes.length).toBeLessThanOrEqual(5);
  });

  it("are uploaded anew if the request that should have done it has ended", async () => {
    const { request } = createLink({ random: 0 });
    // The client hangs up, and the runtime drops the timer.
    request();
    vi.clearAllTimers();
    await vi.advanceTimersByTimeAsync(2000);
    request();
    expect(control.calls).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(2000);
    request();
    await vi.advanceTimersByTimeAsync(5000);
    expect(control.requests).toBe(3);
  });

  it("are uploaded in time although the clock goes back by an hour", async () => {
    const { request } = createLink();
    request();
    await vi.advanceTimersByTimeAsync(5000);
    vi.setSystemTime(Date.now() - HOUR);
    request();
    await vi.advanceTimersByTimeAsync(5000);
    expect(control.requests).toBe(2);
  });

  it("are uploaded as seldom as the answers say, and requests do not wait for overrides meanwhile", async () => {
    const { request, load } = createLink();
    control.answer = { callAgainMs: 14_300 };
    await load();
    for (let sent = 0; sent < 600; sent++) {
      request();
      expect(load()).toBeUndefined();
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(uploads()).toHaveLength(4);
  });

  it.each([Number.NaN, -1, 1e12])(
    "are uploaded although an answer says %d",
    async (callAgainMs) => {
      const { request } = createLink();
      control.answer = { callAgainMs };
      request();
      await vi.advanceTimersByTimeAsync(5000);
      request();
      await vi.advanceTimersByTimeAsync(300_000);
      expect(control.requests).toBe(2);
    },
  );

  it("contain whether the breaker is open", async () => {
    const { request, recorder, load } = createLink();
    recorder.breakerOpen = true;
    await load();
    request();
    await vi.advanceTimersByTimeAsync(5000);
    expect(control.calls.map(({ breakerOpen }) => breakerOpen)).toEqual([true, true]);
  });

  it("do not fail a request if nothing can run in the background", () => {
    const recorder = new Recorder({ background: () => {} });
    const background = () => {
      throw new Error("There is no request.");
    };
    const upload = control.upload.bind(control);
    const options = { upload, timeoutMs: 1000, background, onFailure: () => {} };
    const link = new ControlLink(options, new LiveOverrides(), recorder);
    expect(() => link.record([], undefined, Date.now())).not.toThrow();
  });
});

const OVERRIDE: Override = {
  rule: "api",
  effect: { mode: "off" },
  expiresAt: 2_000_000_000_000,
  reason: "A test.",
  by: "token",
  setAt: 0,
};

describe("a request", () => {
  beforeEach(() => {
    const overrides = { version: 3, all: [OVERRIDE] };
    control.answer = { callAgainMs: 5000, overrides };
  });

  it("waits for the overrides in a new isolate", async () => {
    const { link, load } = createLink();
    await load();
    expect(link.overrides.version).toBe(3);
    expect(control.calls).toMatchObject([{ sequence: 0, minutes: [], overridesVersion: 0 }]);
  });

  it("does not wait if the overrides were loaded in the last ten seconds", async () => {
    const { load } = createLink();
    await load();
    await vi.advanceTimersByTimeAsync(9999);
    expect(load()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(load()).toBeInstanceOf(Promise);
  });

  it("never waits in a busy isolate, whose uploads load the overrides", async () => {
    const { link, request, load } = createLink({ random: 0.999 });
    await load();
    for (let sent = 0; sent < 100; sent++) {
      expect(load()).toBeUndefined();
      request();
      await vi.advanceTimersByTimeAsync(500);
    }
    expect(link.overrides.version).toBe(3);
    expect(control.calls.filter(({ sequence }) => sequence === 0)).toHaveLength(1);
  });

  it.each([
    { timeoutMs: 1000, waitMs: 250 },
    { timeoutMs: 100, waitMs: 25 },
  ])(
    "waits for at most $waitMs ms with a deadline of $timeoutMs ms",
    async ({ timeoutMs, waitMs }) => {
      const { load } = createLink({ timeoutMs });
      control.behaviour = "hang";
      const startedAt = Date.now();
      let waitedMs = 0;
      void load()?.then(() => (waitedMs = Date.now() - startedAt));
      await vi.advanceTimersByTimeAsync(1000);
      expect(waitedMs).toBe(waitMs);
      expect(failures).toEqual(["load-overrides: timeout"]);
    },
  );

  it("does not wait in the five seconds after a failure, and then only one request waits", async () => {
    const { load } = createLink();
    control.behaviour = "refuse";
    await load();
    expect(failures).toEqual(["load-overrides: Error"]);
    await vi.advanceTimersByTimeAsync(4999);
    expect(load()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    control.behaviour = "hang";
    expect(load()).toBeInstanceOf(Promise);
    expect(load()).toBeUndefined();
    expect(control.calls).toHaveLength(2);
  });

  it.each<[string, Behaviour, number]>([
    ["hangs", "hang", 0],
    ["answers after 3.9 seconds", "answer", 3900],
    ["fails after 0.3 seconds", "error-after", 300],
  ])(
    "waits once in five seconds, for 250 ms, while the control object %s",
    async (_, behaviour, delayMs) => {
      const { load } = createLink();
      control.behaviour = behaviour;
      control.delayMs = delayMs;
      const startedAt = Date.now();
      const waitedMs: number[] = [];
      // The client sends each request after the answer to its previous request.
      while (Date.now() - startedAt < 60_000) {
        const sentAt = Date.now();
        const isReady = load()?.then(() => waitedMs.push(Date.now() - sentAt));
        await vi.advanceTimersByTimeAsync(isReady ? 250 : 50);
        await isReady;
      }
      expect(waitedMs.length).toBeGreaterThan(2);
      expect(waitedMs.length).toBeLessThanOrEqual(12);
      expect(Math.max(...waitedMs)).toBe(250);
      expect(control.calls.length).toBe(waitedMs.length);
      expect(failures.length).toBe(waitedMs.length);
    },
  );

  it("waits for the call of another request, although the clock has gone back since a failure", async () => {
    const { link, load } = createLink();
    control.behaviour = "refuse";
    await load();
    vi.setSystemTime(Date.now() - HOUR);
    control.behaviour = "answer";
    await load();
    await vi.advanceTimersByTimeAsync(60_000);
    control.answer = {
      ...control.answer,
      overrides: { version: 5, all: [] },
    };
    control.delayMs = 50;
    void load();
    const second = load();
    await vi.advanceTimersByTimeAsync(60);
    await second;
    expect(link.overrides.version).toBe(5);
    expect(second).toBeInstanceOf(Promise);
  });

  it("loads the overrides within 26 seconds after an answer that named a much longer interval", async () => {
    const { load } = createLink();
    control.answer = { ...control.answer, callAgainMs: 1e12 };
    await load();
    await vi.advanceTimersByTimeAsync(26_000);
    expect(load()).toBeInstanceOf(Promise);
  });

  it("shares one call with all requests that come at the same time", async () => {
    const { link, load } = createLink();
    control.delayMs = 100;
    let ready = 0;
    for (let sent = 0; sent < 100; sent++) void load()?.then(() => ready++);
    expect(control.calls).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(99);
    expect(ready).toBe(0);
    await vi.advanceTimersByTimeAsync(10);
    expect(ready).toBe(100);
    expect(link.overrides.version).toBe(3);
  });

  it("is not held up if the client whose request loads the overrides has hung up", async () => {
    const { load } = createLink();
    control.behaviour = "hang";
    void load();
    vi.clearAllTimers();
    let isReady = false;
    void load()?.then(() => (isReady = true));
    await vi.advanceTimersByTimeAsync(250);
    expect(isReady).toBe(true);
    control.behaviour = "answer";
    await load();
    expect(load()).toBeUndefined();
  });

  it("gets the overrides of a call that took too long for an earlier request", async () => {
    const { link, load } = createLink();
    control.delayMs = 1000;
    void load();
    await vi.advanceTimersByTimeAsync(500);
    expect(link.overrides.version).toBe(0);
    await vi.advanceTimersByTimeAsync(500);
    expect(link.overrides.version).toBe(3);
    expect(load()).toBeUndefined();
  });
});
