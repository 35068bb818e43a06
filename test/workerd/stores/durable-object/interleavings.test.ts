import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { SHARED_REACH } from "../../../../src/request/identity.ts";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { bans, counter } from "../../../suite/counters.ts";
import { drawn } from "../../../suite/runs.ts";
import { verdictOf } from "../../../suite/verdict.ts";
import { withDeadline } from "../../../suite/wrappers.ts";
import { type Namespace, passTime, useVirtualTime, wait, withObjects } from "./objects-in-one.ts";

// Tests two clients that share an object, while all requests of one of them are denied. The tests
// enumerate the moments at which the other client's request begins, the orders of the identities,
// and the distances to the objects. The objects are real, and time is virtual.

/** How long a message to or from an object travels, in milliseconds. */
const DISTANCES = [0, 5, 25];
const TIMEOUT_MS = 1000;
/** The number of requests that the denied client sends at the same time, again and again. */
const LANES = 2;
/** The number of round trips during which the other client's request may begin. */
const TRIPS = 4;
/** The number of such moments within a round trip. */
const STEPS = 5;

/** Creates the counter of an object, whose identity is before or after the identities of others. */
type Create = (fields: Partial<Demand>, place?: "first" | "last") => Demand;

interface Requests {
  /** The requests of the client that is denied. */
  readonly denied: Demand[];
  /** A request of another client, which is within all its limits. */
  readonly allowed: Demand[];
}

const USER = SHARED_REACH;
const GLOBAL = SHARED_REACH + 100;

/** Creates the counters of both clients. `user` can be in any place among the identities. */
const CASES: Record<string, (create: Create, place: "first" | "last") => Requests> = {
  "a limit of the client's own": (create, place) => {
    const user = create({ limit: 1, reach: USER }, place);
    return { denied: [create({ limit: 0 }), user], allowed: [create({}), user] };
  },
  "a limit of the client's own, with two shared ones": (create, place) => {
    const shared = [create({ limit: 1, reach: USER }, place), create({ limit: 1, reach: GLOBAL })];
    return { denied: [create({ limit: 0 }), ...shared], allowed: [create({}), ...shared] };
  },
  "a ban of the client's own": (create, place) => {
    const user = create({ limit: 1, reach: USER, ban: bans(60_000) }, place);
    return { denied: [create({ limit: 0, ban: bans(60_000) }), user], allowed: [create({}), user] };
  },
  "a limit that all clients share": (create, place) => {
    const user = create({ limit: 1, reach: USER }, place);
    return { denied: [create({}), user, create({ limit: 0, reach: GLOBAL })], allowed: [user] };
  },
  "a limit as widely shared": (create, place) => {
    const user = create({ limit: 1, reach: USER }, place);
    return {
      denied: [user, create({ limit: 0, reach: USER })],
      allowed: [create({}), user],
    };
  },
  "a limit that a request with a cost exceeds": (create, place) => {
    const user = create({ limit: 9, reach: USER }, place);
    const denied = [{ ...user, cost: 9 }, create({ limit: 8, cost: 9, reach: GLOBAL })];
    return { denied, allowed: [create({}), { ...user, cost: 9 }] };
  },
  "a limit that a reservation exceeds": (create, place) => {
    const user = create({ limit: 1, ceiling: 9, rollsOver: true, reach: USER }, place);
    const denied = [create({ limit: 1, cost: 9 }), { ...user, cost: 9 }];
    return { denied, allowed: [{ ...user, ceiling: 1 }] };
  },
  "a limit, before a rule that only checks its quota": (create, place) => {
    const user = create({ limit: 1, reach: USER }, place);
    const denied = [create({ checkOnly: true }), user, create({ limit: 0, reach: GLOBAL })];
    return { denied, allowed: [{ ...user, checkOnly: true }] };
  },
};

/** Returns a store whose calls to objects travel for `distanceMs`, there and back. */
function storeAt(objects: Namespace, distanceMs: number): Store {
  const far = (run: () => unknown) => async () => {
    if (distanceMs > 0) await wait(distanceMs);
    const answer = await run();
    if (distanceMs > 0) await wait(distanceMs);
    return answer;
  };
  const namespace = {
    getByName(name: string) {
      const object = objects.getByName(name);
      return {
        run: (...args: Parameters<typeof object.run>) => far(() => object.run(...args))(),
        endHold: (...args: [string, boolean]) => far(() => object.endHold(...args))(),
      };
    },
  } as unknown as Namespace;
  const options = { namespace, prefix: "two", timeoutMs: TIMEOUT_MS, background: () => {} };
  return withDeadline(createDurableObjectStore(options), TIMEOUT_MS);
}

/** Returns a function that creates counters of new objects, whose identities have a given order. */
function creator(): Create {
  const windowMs = 24 * 3_600_000;
  return (fields, place) => {
    const start = place === undefined ? "b" : place === "first" ? "a" : "c";
    return counter({ windowMs, limit: 999, ...fields, identity: start + crypto.randomUUID() });
  };
}

async function isAdmitted(store: Store, group: Demand[]): Promise<boolean> {
  return (await verdictOf(store.decide([group]))).groups[0]?.admitted === true;
}

/** Waits until a moment: a number of milliseconds or, without a distance, of microtasks. */
async function waitUntil(moment: number, distanceMs: number): Promise<void> {
  if (distanceMs > 0) return wait(moment);
  for (let turn = 0; turn < moment; turn++) await null;
}

const MOMENTS = Array.from({ length: TRIPS * STEPS }, (_, index) => index);
const momentOf = (index: number, distanceMs: number) => index * ((2 * distanceMs) / STEPS || 1);

beforeEach(useVirtualTime);

afterEach(() => {
  vi.useRealTimers();
});

describe.each(DISTANCES)("with objects %i ms away", (distanceMs) => {
  const stepMs = Math.max(1, distanceMs / STEPS);

  describe.each(["first", "last"] as const)("if the shared object's name comes %s", (place) => {
    it.each(Object.entries(CASES))(
      "a client that is denied by %s neither denies nor delays another client",
      async (_, requestsOf) => {
        await withObjects((objects) => {
          const store = storeAt(objects, distanceMs);
          const run = async (index: number) => {
            const { denied, allowed } = requestsOf(creator(), place);
            const alone = requestsOf(creator(), place).allowed;
            const startedAlone = Date.now();
            expect(await isAdmitted(store, alone)).toBe(true);
            const aloneMs = Date.now() - startedAlone;
            let isOver = false;
            const flood = Array.from({ length: LANES }, async () => {
              while (!isOver) expect(await isAdmitted(store, denied)).toBe(false);
            });
            await waitUntil(momentOf(index, distanceMs), distanceMs);
            const startedAt = Date.now();
            expect(await isAdmitted(store, allowed), `begins at moment ${index}`).toBe(true);
            expect(Date.now() - startedAt, `begins at moment ${index}`).toBe(aloneMs);
            isOver = true;
            await Promise.all(flood);
          };
          return passTime(stepMs, Promise.all(drawn(MOMENTS).map(run)));
        });
      },
    );
  });

  it("a request that is overtaken after its checks delays no other, and denies one only for a moment", () =>
    withObjects<unknown>((objects) => {
      const store = storeAt(objects, distanceMs);
      const run = async (overtakes: number, begins: number) => {
        const create = creator();
        const user = create({ limit: 1, reach: USER });
        const global = create({ limit: 1, reach: GLOBAL });
        const start = async (index: number, group: Demand[]) => {
          await waitUntil(momentOf(index, distanceMs), distanceMs);
          const startedAt = Date.now();
          return { admitted: await isAdmitted(store, group), tookMs: Date.now() - startedAt };
        };
        const [first, , other] = await Promise.all([
          start(0, [user, global]),
          start(overtakes, [global]),
          start(begins, [user]),
        ]);
        const moments = `overtakes at ${overtakes}, begins at ${begins}`;
        expect(other.tookMs, moments).toBe(2 * distanceMs);
        // The quota of the user is charged exactly once.
        expect(first.admitted && other.admitted, moments).toBe(false);
        const isUsed = first.admitted || other.admitted;
        expect(await isAdmitted(store, [user]), moments).toBe(!isUsed);
      };
      const pairs = MOMENTS.flatMap((overtakes) =>
        MOMENTS.map((begins) => [overtakes, begins] as const),
      );
      return passTime(stepMs, Promise.all(drawn(pairs).map((pair) => run(...pair))));
    }));
});
