import { afterAll, beforeAll, expect, it } from "vitest";
import type { Chaos } from "../environments.ts";
import type { Fault } from "./fault.ts";
import { LIMIT, LOCAL_SHARE, TIMEOUT_MS } from "./rules.ts";
import { median, type Observed, type Seen } from "./scenario.ts";

/**
 * How much longer than the deadline Weir may take, in milliseconds. With a larger margin, the tests
 * could miss that Weir waits twice as long as the deadline.
 */
const MARGIN_MS = TIMEOUT_MS / 3;

/**
 * Defines one test for each fault. Weir must keep the same promises for all faults.
 *
 * @returns a function that returns the running {@link Chaos}. Only tests can call this function,
 * because `beforeAll` starts the chaos
 */
export function chaosSuite(
  faults: readonly Pick<Fault<never>, "does" | "cause">[],
  start: () => Promise<Chaos | undefined>,
): () => Chaos {
  let chaos: Chaos | undefined;

  beforeAll(async () => {
    chaos = await start();
  });

  afterAll(() => chaos?.stop());

  it.each(faults.map(({ does, cause }, index) => ({ does, cause, index })))(
    "handles a store that $does: by onError, in time, and with exact counts afterwards",
    async ({ cause, index }) => {
      const observed = await (chaos as Chaos).watch(index);
      expect(observed.before.every(isAllowed)).toBe(true);
      if (cause === undefined) expectDecided(observed);
      else expectUndecided(observed, cause);
      expectExact(observed);
    },
  );

  return () => chaos as Chaos;
}

function isAllowed({ status, isDecided }: Seen): boolean {
  return status === 200 && isDecided;
}

function expectDecided({ atFirst, then, log }: Observed): void {
  expect(Object.values(atFirst).every(isAllowed)).toBe(true);
  const answers = Object.values(then).flat();
  expect(answers.every(({ isDecided }) => isDecided)).toBe(true);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(3 * LIMIT);
  expect(log).toEqual([]);
}

function expectUndecided(observed: Observed, cause: string): void {
  const { atFirst, then, log } = observed;
  const answers = [...Object.values(atFirst), ...Object.values(then).flat()];
  expect(answers.some(({ isDecided, status }) => isDecided && status !== 429)).toBe(false);

  const statuses = Object.fromEntries(
    Object.entries(atFirst).map(([path, { status }]) => [path, status]),
  );
  expect(statuses).toEqual({
    open: 200,
    closed: 503,
    local: 200,
    closedOverLocal: 503,
    localOverOpen: 200,
  });
  expect(new Set(then.open.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(then.closed.map(({ status }) => status))).toEqual(new Set([503]));
  const passed = then.local.filter(({ status }) => status === 200);
  expect(passed).toHaveLength(LOCAL_SHARE);
  expect(then.local.slice(LOCAL_SHARE).every(({ status }) => status === 429)).toBe(true);

  const tookMs = Object.values(atFirst).map(({ ms }) => ms);
  expect(median(tookMs)).toBeLessThan(TIMEOUT_MS + MARGIN_MS);
  expect(Math.max(...tookMs)).toBeLessThan(TIMEOUT_MS + 2 * MARGIN_MS);

  const lines = log.map((line) => JSON.parse(line.slice(line.indexOf("{"))));
  expect(lines.filter(({ weir }) => weir === "undecided")).toEqual([
    { weir: "undecided", cause, detail: expect.any(String), requests: expect.any(String) },
  ]);
  const states = lines.filter(({ weir }) => weir === "breaker").map(({ state }) => state);
  expect(states).toEqual(["open", "closed"]);
  expect(lines).toHaveLength(3);
  expect(log.join("\n")).not.toMatch(/token-that|198\.18\.|203\.0\.|weir:\w+:52w:[\w-]{8}/);
}

/**
 * Expects that Weir calls the store again after the fault, and admits a client exactly as often as
 * its limit allows.
 */
function expectExact({ admittedAfter, sentAfter }: Observed): void {
  expect(sentAfter).toBe(LIMIT * 1.5);
  expect(admittedAfter).toBe(LIMIT);
}
