import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import type { Decision } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { withDenialCache } from "../../../src/stores/isolate/denial-cache.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Answer, type Store, StoreError } from "../../../src/stores/store.ts";
import { randomOf } from "../../suite/random.ts";
import { runs, SEED } from "../../suite/runs.ts";
import { mostInAnyInterval } from "../../suite/sliding-suite.ts";

// Requests that pass before the store has decided them, under a rule with sliding and async.

const NOW = 1_800_000_000_000;
const RULE = { name: "reads", limit: 4, window: "10s", sliding: true, async: true } as const;

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** Creates isolates over one store. */
function isolatesOf(clock: "edge" | "store", random: (below: number) => number, skewMs: number) {
  const config = defineConfig({ clock, rules: [RULE] as ConfigInput["rules"] });
  const memory = createMemoryStore();
  /** How long a call takes on each way, at most, and how many of the calls are lost: one in so many. */
  const network = { slowMs: 150, lost: 0 };
  const wait = () => new Promise((resolve) => setTimeout(resolve, random(network.slowMs)));
  const store: Store = {
    ...memory,
    decide: (groups, now) =>
      groups.map(async (group) => {
        const isLost = network.lost > 0 && random(network.lost) === 0;
        await wait();
        if (isLost && random(2) === 0) throw new StoreError("unreachable", "lost");
        const [answered] = memory.decide([group], now ?? Date.now());
        await wait();
        if (isLost) throw new StoreError("timeout", "lost");
        return { ...((await answered) as Answer), fromMemory: false };
      }),
  };
  const isolates = Array.from({ length: 3 }, () => {
    const skew = random(2 * skewMs + 1) - skewMs;
    const limiter = new Limiter(config, withDenialCache(store), {
      time: () => Date.now() + skew,
      background: (task) => void task.catch(() => {}),
    });
    return () => {
      const applied = config.rules.map((rule) => {
        return { rule, windows: rule.windows, identity: "client" };
      });
      return limiter.decide(applied, { ahead: true });
    };
  });
  return { isolates, network };
}

describe.each(["edge", "store"] as const)("with the clock %s, of three isolates", (clock) => {
  it.each([0, 400])(
    "each lets at most one request pass above the limit in any interval, with clocks that differ by up to %i ms",
    async (skewMs) => {
      let [above, ahead] = [0, 0];
      for (let seed = SEED; seed < SEED + runs(200); seed++) {
        vi.setSystemTime(NOW);
        const random = randomOf(seed);
        const { isolates, network } = isolatesOf(clock, random, skewMs);
        network.lost = [0, 0, 4, 20][random(4)] as number;
        const passed: { at: number; cost: number }[] = [];
        const note = (decision: Decision) => {
          if (decision.outcome !== "allowed" || decision.storeFailure) return;
          passed.push({ at: Date.now(), cost: 1 });
          if (decision.ahead) ahead += 1;
        };
        for (let sent = 0; sent < 200; sent++) {
          await pass(random(5) === 0 ? random(9000) : random(300));
          isolates[random(3)]?.().then(note);
        }
        await pass(5000);
        // A request that waits passes after its charge, and a clock that is ahead counts too early.
        const shorterMs = 2 * network.slowMs + 2 * skewMs;
        const most = mostInAnyInterval(passed, 10_000 - shorterMs);
        expect(most, `seed ${seed}`).toBeLessThanOrEqual(RULE.limit + 3);
        if (most > RULE.limit) above += 1;
      }
      expect([above > 0, ahead > 0]).toEqual([true, true]);
    },
  );
});

it("marks a client until the request that passed without a charge counts no longer", async () => {
  const { isolates, network } = isolatesOf("edge", () => 0, 0);
  network.slowMs = 1;
  const [first, second] = isolates as [() => Promise<Decision>, () => Promise<Decision>];
  const isAhead = (decision: Decision) => decision.outcome === "allowed" && !!decision.ahead;
  await pass(900);
  for (let sent = 0; sent < 4; sent++) {
    expect(isAhead(await first())).toBe(true);
    await pass(1);
  }
  // The other isolate does not know that the limit is used up.
  await pass(4000);
  expect(isAhead(await second())).toBe(true);
  await pass(1);
  const retryAfterMs = NOW + 11_000 - Date.now();
  const sent = second();
  await pass(1);
  expect(await sent).toMatchObject({ outcome: "limited", retryAfterMs });
  // The charges count until 11 s, and the request without one until the same time after its sub-window: 15 s.
  await pass(NOW + 11_000 - Date.now());
  const waiting = second();
  await pass(1);
  expect(isAhead(await waiting)).toBe(false);
  await pass(NOW + 14_999 - Date.now());
  const last = second();
  await pass(1);
  expect(isAhead(await last)).toBe(false);
  expect(isAhead(await second())).toBe(true);
  await pass(10);
});
