import { describe, expect, it } from "vitest";
import { Isolate } from "../../../../bench/simulation/fleet.ts";
import { Ledger } from "../../../../bench/simulation/ledger.ts";
import { type Request, withRequest } from "../../../../bench/simulation/request.ts";
import { audit, emptyResult, type RunResult } from "../../../../bench/simulation/run-result.ts";
import type { Demand, Tally } from "../../../../src/engine/counter.ts";

const WINDOW_MS = 60_000;
const LIMIT = 3;

const counter: Demand = {
  key: "key",
  identity: "somebody",
  limit: LIMIT,
  windowMs: WINDOW_MS,
  offsetMs: 0,
  cost: 1,
  ceiling: LIMIT,
};

const fail = () => Promise.reject(new Error("The test does not call the store."));
const newIsolate = () =>
  new Isolate(0, () => ({ decide: (groups) => groups.map(fail), adjust: fail, reset: fail }));

function requestOn(isolate: Isolate): Request {
  return { client: 0, isolate, at: 0, answer: undefined };
}

const answer = (now: number, admitted: boolean, tally: Partial<Tally>) => ({
  now,
  admitted,
  tallies: [{ count: 0, resetMs: WINDOW_MS, banMs: 0, ...tally }],
});

/** Records that the store has charged quota to an isolate. */
function charge(ledger: Ledger, isolate: Isolate, charged: number): void {
  const groups = [[withRequest(counter, requestOn(isolate))]];
  ledger.recordCharges(isolate, groups, [answer(0, true, { charged })], []);
}

/** Records a decision from a lease whose window ends at `endsAt`. */
function decide(ledger: Ledger, isolate: Isolate, at: number, admitted = true, endsAt = WINDOW_MS) {
  const tally = { resetMs: endsAt - at };
  ledger.recordDecision(requestOn(isolate), answer(at, admitted, tally), at);
}

/** Audits the ledger and returns the result. `count` is the count in the store. */
async function resultOf(ledger: Ledger, count: number): Promise<RunResult> {
  const result = emptyResult();
  await audit(result, ledger, LIMIT, async () => count);
  return result;
}

describe("the ledger of a simulation", () => {
  it("reports no violation when there is none", async () => {
    const [ledger, isolate] = [new Ledger(counter), newIsolate()];
    charge(ledger, isolate, 2);
    decide(ledger, isolate, 10);
    decide(ledger, isolate, 20);
    const result = await resultOf(ledger, 2);
    expect(result).toMatchObject({ over: 0, overdrawn: 0, miscounted: 0 });
    expect(result).toMatchObject({ afterWindow: 0, wronglyDenied: 0 });
    expect(result.fromMemory).toBe(2);
  });

  it("reports requests admitted over the limit", async () => {
    const [ledger, isolate] = [new Ledger(counter), newIsolate()];
    charge(ledger, isolate, LIMIT + 1);
    for (let at = 0; at <= LIMIT; at++) decide(ledger, isolate, at);
    expect(await resultOf(ledger, LIMIT + 1)).toMatchObject({ over: 1, overdrawn: 0 });
  });

  it("reports requests admitted with another isolate's quota", async () => {
    const [ledger, one, other] = [new Ledger(counter), newIsolate(), newIsolate()];
    charge(ledger, one, 2);
    decide(ledger, other, 10);
    expect(await resultOf(ledger, 2)).toMatchObject({ over: 0, overdrawn: 1 });
  });

  it("reports requests admitted from a lease after the end of its window", async () => {
    const [ledger, isolate] = [new Ledger(counter), newIsolate()];
    charge(ledger, isolate, 2);
    decide(ledger, isolate, WINDOW_MS + 5, true, WINDOW_MS);
    expect(await resultOf(ledger, 2)).toMatchObject({
      afterWindow: 1,
      mostAfterWindowMs: 5,
      overdrawn: 0,
    });
  });

  it("reports counts that differ from the charged quota", async () => {
    const [ledger, isolate] = [new Ledger(counter), newIsolate()];
    charge(ledger, isolate, 2);
    expect(await resultOf(ledger, 1)).toMatchObject({ miscounted: 1 });
  });

  it("reports where the unused quota was", async () => {
    const isolates = [newIsolate(), newIsolate(), newIsolate()] as const;
    const [dead, quiet, busy] = isolates;
    const ledger = new Ledger(counter);
    for (const isolate of isolates) charge(ledger, isolate, 1);
    dead.die(100);
    decide(ledger, quiet, 100, false);
    decide(ledger, busy, WINDOW_MS - 100, false);
    decide(ledger, busy, WINDOW_MS - 50, false);
    const { admissible, wronglyDenied, wronglyDeniedBy, worstWindowShare } = await resultOf(
      ledger,
      3,
    );
    expect({ admissible, wronglyDenied }).toEqual({ admissible: 3, wronglyDenied: 3 });
    expect(worstWindowShare).toBe(1);
    expect(wronglyDeniedBy).toEqual({ dead: 1, quiet: 1, busy: 1, store: 0 });
  });
});
