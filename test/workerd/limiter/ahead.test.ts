import { describe, expect, it } from "vitest";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { AheadGate } from "../../../src/limiter/ahead.ts";
import type { Allowed, Decision } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { withDenialCache } from "../../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Answer, type Store, StoreError } from "../../../src/stores/store.ts";

/** The beginning of an hour. */
const HOUR_START = 1_700_002_800_000;
const HOUR = 3_600_000;

/** A store that decides at once, but answers only when the test says so. */
class SlowStore {
  readonly #memory = createMemoryStore();
  #open: (() => void)[] = [];
  calls = 0;
  now: () => number = Date.now;
  fault: "lost" | "refused" | undefined;

  readonly store: Store = {
    decide: (groups, now = this.now()) => {
      this.calls += 1;
      const answers = this.fault === "refused" ? [] : this.#memory.decide(groups, now);
      const { fault } = this;
      return groups.map(async (_, at) => {
        await new Promise<void>((resolve) => this.#open.push(resolve));
        if (fault) throw new StoreError("timeout", "no answer");
        return { ...(await (answers[at] as Promise<Answer>)), fromMemory: false };
      });
    },
    adjust: (...all) => this.#memory.adjust(...all),
    reset: (...all) => this.#memory.reset(...all),
  };

  /** Answers all calls until now. */
  async answer(): Promise<void> {
    for (const resolve of this.#open.splice(0)) resolve();
    await turns();
  }
}

/** Lets all promises that can settle do so. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

function isolateOf(
  rules: ConfigInput["rules"],
  slow = new SlowStore(),
  { clock: windows = "edge" }: Pick<ConfigInput, "clock"> = {},
) {
  const config = defineConfig({ clock: windows, rules });
  const clock = { now: HOUR_START };
  const background = () => {};
  const store = withLeases(withDenialCache(slow.store), { timeoutMs: 1000, background });
  const limiter = new Limiter(config, store, { time: () => clock.now });
  const send = (identity = "someone", random = Math.random) => {
    const applied = config.rules.map((rule) => ({ rule, windows: rule.windows, identity }));
    return limiter.decide(applied, { ahead: true, random });
  };
  /** Returns the outcome if it is known without an answer. */
  const now = async (identity?: string, random?: () => number) => {
    let outcome: string = "waits";
    send(identity, random).then((decision) => {
      outcome = isAhead(decision) ? "ahead" : decision.outcome;
    });
    await turns();
    return outcome;
  };
  return { config, clock, slow, limiter, send, now };
}

function isAhead(decision: Decision): boolean {
  return decision.outcome === "allowed" && decision.ahead !== undefined;
}

const reads = { name: "reads", limit: 2, window: "1h", async: true, lease: false } as const;

describe("a rule with async", () => {
  it("lets one request of a client pass at a time, and others wait for its answer", async () => {
    const { now, slow } = isolateOf([{ ...reads, limit: 50 }]);
    expect(await now()).toBe("ahead");
    expect(await now()).toBe("waits");
    expect(await now("other")).toBe("ahead");
    await slow.answer();
    expect(await now()).toBe("ahead");
  });

  it("lets no request pass ahead after a denial until the window has ended", async () => {
    const { now, send, slow, clock } = isolateOf([reads]);
    for (const expected of ["ahead", "ahead", "ahead", "limited"]) {
      expect(await now()).toBe(expected);
      await slow.answer();
    }
    // This isolate no longer remembers the denial.
    clock.now += 11_000;
    const waiting = send();
    await turns();
    await slow.answer();
    expect(await waiting).toMatchObject({ outcome: "limited" });
    clock.now = HOUR_START + HOUR;
    expect(await now()).toBe("ahead");
  });

  it.each(["lost", "refused"] as const)(
    "lets no request pass ahead after a %s answer until the store answers, and this client until its window ends",
    async (fault) => {
      const { now, send, slow, clock } = isolateOf([{ ...reads, limit: 50 }]);
      slow.fault = fault;
      expect(await now()).toBe("ahead");
      await slow.answer();
      slow.fault = undefined;
      const waiting = send("other");
      expect(await now("third")).toBe("waits");
      await slow.answer();
      expect(await waiting).toMatchObject({ outcome: "allowed" });
      expect(await now("third")).toBe("ahead");
      expect(await now()).toBe("waits");
      clock.now = HOUR_START + HOUR;
      expect(await now()).toBe("ahead");
    },
  );

  it("lets no second request of a client pass while the first one has no answer", async () => {
    const { now, slow, clock } = isolateOf([{ ...reads, limit: 50 }]);
    expect(await now()).toBe("ahead");
    clock.now = HOUR_START + HOUR - 1;
    expect(await now()).toBe("waits");
    clock.now = HOUR_START + HOUR;
    expect(await now()).toBe("ahead");
    // The answer to the request of the last window changes nothing.
    await slow.answer();
    expect(await now()).toBe("ahead");
  });

  it("denies a request from memory after a request that has waited was denied", async () => {
    const { now, slow } = isolateOf([{ ...reads, limit: 1 }]);
    expect(await now()).toBe("ahead");
    expect(await now()).toBe("waits");
    await slow.answer();
    expect(await now()).toBe("limited");
    expect(slow.calls).toBe(2);
  });

  it("lets no request pass ahead while the clock is behind a time that it has shown", async () => {
    const { now, clock } = isolateOf([{ ...reads, limit: 50 }]);
    expect(await now()).toBe("ahead");
    clock.now -= 1;
    expect(await now("other")).toBe("waits");
    clock.now += 1;
    expect(await now("other")).toBe("ahead");
  });

  it("has one mark for all shards of a client", async () => {
    const { now } = isolateOf([{ ...reads, limit: 50, shards: 10 }]);
    expect(await now("someone", () => 0)).toBe("ahead");
    expect(await now("someone", () => 0.99)).toBe("waits");
  });

  it("waits until the longest window of the rule has ended", async () => {
    const limits = [
      { limit: 1, window: "1m" },
      { limit: 50, window: "1h" },
    ] as const;
    const { now, slow, clock } = isolateOf([{ name: "reads", limits, async: true, lease: false }]);
    for (const expected of ["ahead", "ahead"]) {
      expect(await now()).toBe(expected);
      await slow.answer();
    }
    clock.now += 60_000;
    expect(await now()).toBe("waits");
  });

  it("waits until a sliding window has wholly passed", async () => {
    const { now, slow, clock } = isolateOf([{ ...reads, sliding: 6 }]);
    slow.fault = "lost";
    expect(await now()).toBe("ahead");
    await slow.answer();
    slow.fault = undefined;
    // No request passes ahead until the store has answered again.
    expect(await now("other")).toBe("waits");
    await slow.answer();
    // The request has been charged in a sub-window of ten minutes, which counts for an hour after its end.
    clock.now = HOUR_START + HOUR + HOUR / 6 - 1;
    expect(await now()).toBe("waits");
    await slow.answer();
    clock.now += 1;
    expect(await now()).toBe("ahead");
  });

  it("decides from leases if they cover the request", async () => {
    const { now, slow } = isolateOf([{ name: "reads", limit: 10_000, window: "1h", async: true }]);
    for (let request = 0; request < 40; request++) {
      await now();
      await slow.answer();
    }
    const { calls } = slow;
    expect(await now()).toBe("allowed");
    expect(slow.calls - calls).toBeLessThanOrEqual(1);
  });
});

it("lets no request pass ahead after a failed answer to a request that waited, until the store answers", async () => {
  const { config, limiter, slow, now } = isolateOf([reads]);
  const applied = config.rules.map((rule) => ({ rule, windows: rule.windows, identity: "first" }));
  const waiting = () => limiter.decide(applied);
  slow.fault = "refused";
  const failed = waiting();
  await turns();
  await slow.answer();
  expect((await failed).outcome).toBe("undecided");
  expect(await now("second")).toBe("waits");
  slow.fault = undefined;
  await slow.answer();
  const answered = waiting();
  await turns();
  await slow.answer();
  expect((await answered).outcome).toBe("allowed");
  expect(await now("third")).toBe("ahead");
});

describe("with the store's clock behind this isolate's", () => {
  /** An isolate whose clock is 100 ms ahead of the store's, near the end of the store's window. */
  function aheadOfStore() {
    const slow = new SlowStore();
    const isolate = isolateOf([{ ...reads, limit: 1 }], slow, { clock: "store" });
    slow.now = () => isolate.clock.now - 100;
    isolate.clock.now = HOUR_START + HOUR - 50;
    return isolate;
  }

  it("lets no second request of a window pass ahead before the first one is answered", async () => {
    const { now, slow, clock } = aheadOfStore();
    expect(await now()).toBe("ahead");
    await slow.answer();
    expect(await now()).toBe("ahead");
    clock.now += 60;
    expect(await now()).toBe("waits");
    await slow.answer();
    clock.now += 20;
    expect(await now()).not.toBe("ahead");
  });

  it("lets no second request of a window pass ahead after a failed answer", async () => {
    const { now, send, slow, clock } = aheadOfStore();
    slow.fault = "refused";
    expect(await now()).toBe("ahead");
    await slow.answer();
    slow.fault = undefined;
    const other = send("other");
    await turns();
    await slow.answer();
    await other;
    clock.now += 60;
    expect(await now()).toBe("waits");
  });
});

describe("other rules beside one with async", () => {
  it("an enforced rule without async makes the request wait", async () => {
    const { now } = isolateOf([reads, { name: "exact", limit: 9, window: "1h" }]);
    expect(await now()).toBe("waits");
  });

  it("an enforced rule whose lease covers the request is charged from the lease", async () => {
    const { config, limiter, slow, now } = isolateOf([
      { name: "exact", limit: 10_000, window: "1h" },
      reads,
    ]);
    const [exact] = config.rules.map((rule) => ({ rule, windows: rule.windows, identity: "it" }));
    for (let request = 0; request < 40; request++) {
      const decided = limiter.decide([exact as never]);
      await turns();
      await slow.answer();
      await decided;
    }
    const before = await usedUnder(limiter, exact, slow);
    for (let request = 0; request < 3; request++) {
      expect(await now("it")).toBe("ahead");
      await slow.answer();
    }
    expect(await usedUnder(limiter, exact, slow)).toBe(Number(before) + 3);
  });

  it("a rule that has admitted the request stays charged although another one denies it", async () => {
    const { config, limiter, slow, now } = isolateOf([
      { ...reads, name: "wide", limit: 50 },
      { ...reads, limit: 1 },
    ]);
    for (let request = 0; request < 2; request++) {
      expect(await now()).toBe("ahead");
      await slow.answer();
    }
    const [wide] = config.rules.map((rule) => ({
      rule,
      windows: rule.windows,
      identity: "someone",
    }));
    expect(await usedUnder(limiter, wide, slow)).toBe(2);
  });

  it.each(["shadow", "mark"] as const)(
    "a rule with the mode %s makes no request wait",
    async (mode) => {
      const { send, slow } = isolateOf([reads, { name: "other", limit: 0, window: "1h", mode }]);
      const decision = (await send()) as Allowed;
      expect(decision.ahead).toBeDefined();
      await slow.answer();
      const late = decision.verdicts.map(({ pendingVerdict }) => pendingVerdict);
      expect((await Promise.all(late)).flat()).toMatchObject([
        { says: "admitted" },
        { says: "denied" },
      ]);
    },
  );
});

async function usedUnder(limiter: Limiter, applied: unknown, slow: SlowStore) {
  const read = limiter.decide([applied as never], { cost: 0, checkOnly: true });
  await turns();
  await slow.answer();
  const [quota] = ((await read) as Allowed).quotas;
  return quota && quota.limit - quota.remaining;
}

describe("the quotas of a request that passes ahead", () => {
  it("are the policies alone until the answer arrives, and then those of the answer", async () => {
    const { send, slow } = isolateOf([reads]);
    const { quotas, ahead } = (await send()) as Allowed;
    expect(quotas).toEqual([]);
    expect(ahead?.policies()).toMatchObject([{ policy: "reads", limit: 2, windowMs: HOUR }]);
    expect(ahead?.quotas()).toEqual([]);
    await slow.answer();
    expect(ahead?.quotas()).toMatchObject([{ remaining: 1, violated: false }]);
  });

  it("are those that this isolate has seen last in this window", async () => {
    const { send, slow, clock } = isolateOf([
      { name: "reads", limit: 9, window: "1h", async: true },
    ]);
    await send();
    await slow.answer();
    const { ahead } = (await send()) as Allowed;
    expect(ahead?.quotas()).toMatchObject([{ remaining: 7 }]);
    await slow.answer();
    clock.now += HOUR;
    expect(((await send()) as Allowed).ahead?.quotas()).toEqual([]);
  });

  it("show a request over the limit", async () => {
    const { send, slow } = isolateOf([{ ...reads, limit: 1 }]);
    await send();
    await slow.answer();
    const { ahead } = (await send()) as Allowed;
    await slow.answer();
    expect(ahead?.quotas()).toMatchObject([{ remaining: 0, violated: true }]);
    expect(await ahead?.verdicts).toMatchObject([{ says: "denied" }]);
  });
});

it("charges the response after the answer, within the reserve's rule", async () => {
  const cost = { reserve: 10, settle: "header:x-tokens", max: 1000 } as const;
  const { send, slow, limiter, config } = isolateOf([{ ...reads, limit: 100, cost }]);
  const decision = (await send()) as Allowed;
  const charged = limiter.chargeResponse(decision, () => 25);
  await turns();
  await slow.answer();
  await charged;
  const [rule] = config.rules.map((each) => ({
    rule: each,
    windows: each.windows,
    identity: "someone",
  }));
  expect(await usedUnder(limiter, rule, slow)).toBe(25);
});

it("lets no request of a denied client pass before the store's window ends, if this isolate's clock is ahead", async () => {
  const { config, clock } = isolateOf([reads]);
  const [rule] = config.rules;
  const counter = { key: "a", identity: "a", limit: 2, windowMs: HOUR, offsetMs: 0, cost: 1 };
  const counters = [{ appliedRule: { rule, identity: "a" }, counter }] as never;
  const gate = new AheadGate({ clock: "store" }, () => clock.now);
  clock.now += HOUR - 1;
  const tallies = [{ count: 2, resetMs: 1000, banMs: 0 }];
  gate.pass(counters, Promise.resolve({ now: clock.now, admitted: false, tallies }));
  await turns();
  clock.now += 999;
  expect(gate.mayPass([counters])).toBe(false);
  clock.now += 1;
  expect(gate.mayPass([counters])).toBe(true);
});

describe("the bounded table", () => {
  const { config } = isolateOf([{ ...reads, limit: 50 }]);
  const [rule] = config.rules;

  function countersOf(identity: string, windowMs = HOUR) {
    const windows = rule?.windows ?? [];
    const counter = {
      key: identity,
      identity,
      limit: 50,
      windowMs,
      offsetMs: 0,
      cost: 1,
      ceiling: 50,
    };
    const appliedRule = { rule, windows, identity };
    return [{ appliedRule, rule, window: windows[0], capacity: 50, counter }] as never;
  }

  it("lets nobody new pass ahead while it is full, and again when windows have ended", () => {
    const clock = { now: HOUR_START };
    const gate = new AheadGate({ clock: "edge" }, () => clock.now, 2);
    const never = new Promise<Answer>(() => {});
    for (const client of ["a", "b"]) {
      expect(gate.mayPass([countersOf(client)])).toBe(true);
      gate.pass(countersOf(client), never);
    }
    expect(gate.mayPass([countersOf("c")])).toBe(false);
    clock.now = HOUR_START + HOUR;
    expect(gate.mayPass([countersOf("c")])).toBe(true);
  });

  it("lets others pass when the windows of denied clients have ended by the store's clock", async () => {
    const clock = { now: HOUR_START };
    const gate = new AheadGate({ clock: "store" }, () => clock.now, 2);
    for (const window of ["first", "second", "third"]) {
      for (const client of ["a", "b"]) {
        const counters = countersOf(`${window} ${client}`);
        expect(gate.mayPass([counters])).toBe(true);
        const tallies = [{ count: 50, resetMs: HOUR, banMs: 0 }];
        gate.pass(counters, Promise.resolve({ now: clock.now, admitted: false, tallies }));
        await turns();
      }
      expect(gate.mayPass([countersOf("c")])).toBe(false);
      clock.now += HOUR;
    }
  });

  it("lets others pass when a shorter window has ended that began while it was full", async () => {
    const clock = { now: HOUR_START };
    const gate = new AheadGate({ clock: "edge" }, () => clock.now, 2);
    const charged = Promise.resolve({ now: HOUR_START, admitted: true, tallies: [] });
    gate.pass(countersOf("a"), new Promise(() => {}));
    gate.pass(countersOf("b"), charged);
    expect(gate.mayPass([countersOf("c")])).toBe(false);
    await turns();
    gate.pass(countersOf("c", 1000), new Promise(() => {}));
    expect(gate.mayPass([countersOf("d")])).toBe(false);
    clock.now += 1000;
    expect(gate.mayPass([countersOf("d")])).toBe(true);
  });
});
