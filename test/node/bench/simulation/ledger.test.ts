import { describe, expect, it } from "vitest";
import { audit, type Figures, noFigures } from "../../../../bench/simulation/figures.ts";
import { Isolate } from "../../../../bench/simulation/isolate.ts";
import { Ledger } from "../../../../bench/simulation/ledger.ts";
import { type Request, traced } from "../../../../bench/simulation/request.ts";
import type { Counter, Tally } from "../../../../src/engine/counter.ts";

const WINDOW_MS = 60_000;
const LIMIT = 3;

const counter: Counter = {
  key: "key",
  identity: "somebody",
  limit: LIMIT,
  windowMs: WINDOW_MS,
  offsetMs: 0,
  cost: 1,
  ceiling: LIMIT,
};

const unused = () => Promise.reject(new Error("not asked"));
const newIsolate = () => new Isolate(0, () => ({ decide: unused, adjust: unused, reset: unused }));

function requestOn(isolate: Isolate): Request {
  return { client: 0, isolate, at: 0, call: undefined };
}

const answer = (admitted: boolean, tally: Partial<Tally>) => ({
  admitted,
  tallies: [{ count: 0, resetMs: WINDOW_MS, banMs: 0, ...tally }],
});

/** The store charges an isolate. */
function charge(ledger: Ledger, isolate: Isolate, charged: number): void {
  const groups = [[traced(counter, requestOn(isolate))]];
  ledger.charged(isolate, groups, { now: 0, groups: [answer(true, { charged })] }, []);
}

/** An isolate decides by itself, as if in the window that ends then. */
function decide(ledger: Ledger, isolate: Isolate, at: number, admitted = true, endsAt = WINDOW_MS) {
  const tally = { resetMs: endsAt - at };
  ledger.decided(requestOn(isolate), { now: at, groups: [answer(admitted, tally)] }, at);
}

async function figuresOf(ledger: Ledger, count: number): Promise<Figures> {
  const figures = noFigures();
  await audit(figures, ledger, LIMIT, async () => count);
  return figures;
}

describe("the ledger of a simulation", () => {
  it("finds nothing wrong where all is right", async () => {
    const [ledger, isolate] = [new Ledger(counter), newIsolate()];
    charge(ledger, isolate, 2);
    decide(ledger, isolate, 10);
    decide(ledger, isolate, 20);
    const figures = await figuresOf(ledger, 2);
    expect(figures).toMatchObject({ over: 0, overdrawn: 0, miscounted: 0, late: 0, missed: 0 });
    expect(figures.fromMemory).toBe(2);
  });

  it("sees what is admitted over the limit", async () => {
    const [ledger, isolate] = [new Ledger(counter), newIsolate()];
    charge(ledger, isolate, LIMIT + 1);
    for (let at = 0; at <= LIMIT; at++) decide(ledger, isolate, at);
    expect(await figuresOf(ledger, LIMIT + 1)).toMatchObject({ over: 1, overdrawn: 0 });
  });

  it("sees what is admitted with another isolate's quota", async () => {
    const [ledger, one, other] = [new Ledger(counter), newIsolate(), newIsolate()];
    charge(ledger, one, 2);
    decide(ledger, other, 10);
    expect(await figuresOf(ledger, 2)).toMatchObject({ over: 0, overdrawn: 1 });
  });

  it("sees what is admitted from a lease after its window", async () => {
    const [ledger, isolate] = [new Ledger(counter), newIsolate()];
    charge(ledger, isolate, 2);
    decide(ledger, isolate, WINDOW_MS + 5, true, WINDOW_MS);
    expect(await figuresOf(ledger, 2)).toMatchObject({ late: 1, latestMs: 5, overdrawn: 0 });
  });

  it("sees counts that are not what was charged", async () => {
    const [ledger, isolate] = [new Ledger(counter), newIsolate()];
    charge(ledger, isolate, 2);
    expect(await figuresOf(ledger, 1)).toMatchObject({ miscounted: 1 });
  });

  it("tells where the quota lies that is missing", async () => {
    const isolates = [newIsolate(), newIsolate(), newIsolate()] as const;
    const [dead, quiet, busy] = isolates;
    const ledger = new Ledger(counter);
    for (const isolate of isolates) charge(ledger, isolate, 1);
    dead.die(100);
    decide(ledger, quiet, 100, false);
    decide(ledger, busy, WINDOW_MS - 100, false);
    decide(ledger, busy, WINDOW_MS - 50, false);
    const { rightful, missed, missedBy, worstMissed } = await figuresOf(ledger, 3);
    expect({ rightful, missed, worstMissed }).toEqual({ rightful: 3, missed: 3, worstMissed: 1 });
    expect(missedBy).toEqual({ dead: 1, quiet: 1, busy: 1, store: 0 });
  });
});
