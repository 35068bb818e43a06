import { pathToFileURL } from "node:url";
import { markdownTable } from "markdown-table";
import { startRedis } from "../../dev/redis.ts";
import { startUpstashRest } from "../../dev/upstash-rest.ts";
import { type Adjustment, type Demand, windowAt } from "../../src/engine/counter.ts";
import { type Entry, NOTHING } from "../../src/stores/batch.ts";
import { createUpstashEntries } from "../../src/stores/upstash/upstash-store.ts";

// Prints the commands of single decisions, as the script itself counts them. docs/cost.md has some of these rows.

const HOUR = 3_600_000;
/** A run begins in the middle of a window, so that no window ends during the run. */
const NOW = Date.now();
const WINDOWS = { windowMs: HOUR, offsetMs: (NOW - HOUR / 2) % HOUR };

type Fields = Partial<Demand>;
type Work = Partial<Pick<Entry, "unused" | "adjusted" | "removed" | "group">>;

/** Calls that come first, and the call whose commands the table shows. Each counter is a new one. */
interface Case {
  readonly decision: string;
  readonly before?: readonly Work[];
  readonly measured: Work;
}

let counters = 0;

function counter(fields: Fields = {}): Demand {
  const identity = `client${++counters}`;
  const key = `weir:rule:1h:${identity}`;
  const limit = fields.limit ?? 10;
  return { key, identity, limit, ceiling: limit, ...WINDOWS, cost: 1, ...fields };
}

const decide = (...group: Demand[]): Work => ({ group });
const adjust = (...adjusted: Adjustment[]): Work => ({ adjusted });
const giveBack = (each: Demand, quota: number): Work => ({
  unused: [
    { counter: each, quota, window: each.slot === undefined ? windowAt(NOW, WINDOWS).index : 0 },
  ],
});

/** A decision about counters that other requests have used: `used` times the same request. */
function after(used: number, decision: string, ...group: Demand[]): Case {
  return {
    decision,
    before: Array.from({ length: used }, () => decide(...group)),
    measured: decide(...group),
  };
}

function cases(): Case[] {
  const once = { lengthsMs: [HOUR], forgetAfterMs: HOUR };
  const longer = { lengthsMs: [HOUR, 2 * HOUR], forgetAfterMs: HOUR };
  const rolling = { rollsOver: true, ceiling: 20 };
  const sliding = { subWindows: 10, windowMs: HOUR / 10 };
  const [full, fullToo, fresh] = [counter({ limit: 1 }), counter({ limit: 1 }), counter()];
  const reserved = counter({ cost: 5 });
  const reservedRolling = counter({ cost: 5, ...rolling });
  const reservedSliding = counter({ cost: 5, ...sliding });
  const reservedBan = counter({ cost: 5, ban: once });
  const debt = counter({ ...rolling, cost: 20 });
  const slots = counter({ limit: 1, slot: 1 });
  const [block, returned] = [counter({ limit: 800, block: 50 }), counter({ block: 5, limit: 80 })];
  return [
    after(1, "one counter, admitted", counter()),
    after(0, "one counter, the first request of its window", counter()),
    after(1, "one counter, denied", counter({ limit: 1 })),
    after(
      1,
      "three counters (one rule with three windows, or three rules)",
      ...[1, 2, 3].map(() => counter()),
    ),
    {
      ...after(0, "two counters, denied by the first one", full, counter()),
      before: [decide(full)],
    },
    {
      ...after(0, "two counters, denied by the second one, the first one new", fresh, fullToo),
      before: [decide(fullToo)],
    },
    after(1, "`capacity` or `maxReserved`, admitted", counter(rolling)),
    after(1, "`capacity` or `maxReserved`, denied", counter({ limit: 1, rollsOver: true })),
    {
      decision: "… the first decision on a client's debt after its limit was lowered",
      before: [decide(debt)],
      measured: decide({ ...debt, limit: 4 }),
    },
    after(1, "`sliding`, admitted", counter(sliding)),
    after(1, "`sliding`, denied", counter({ limit: 1, ...sliding })),
    after(1, "`ban`, admitted", counter({ ban: once })),
    after(1, "`ban`, a denial that begins the ban", counter({ limit: 1, ban: once })),
    after(
      1,
      "`ban` with several lengths, a denial that begins a ban",
      counter({ limit: 1, ban: longer }),
    ),
    after(2, "`ban`, a request during the ban", counter({ limit: 1, ban: longer })),
    after(1, "`shards`", counter()),
    {
      decision: '`count` or `cost: "header:…"`, before the response',
      measured: decide(counter({ checkOnly: true })),
    },
    {
      decision: "… if the response is charged, in addition",
      before: [decide(reserved)],
      measured: adjust({ ...reserved, cost: 1 }),
    },
    {
      decision: "the settlement of a `reserve`, if it differs from the cost",
      before: [decide(reserved)],
      measured: adjust({ ...reserved, cost: -1 }),
    },
    {
      decision: "… with `capacity` or `maxReserved`",
      before: [decide(reservedRolling)],
      measured: adjust({ ...reservedRolling, cost: -1 }),
    },
    {
      decision: "… with `sliding`",
      before: [decide(reservedSliding)],
      measured: adjust({
        ...reservedSliding,
        cost: -1,
        chargedIn: windowAt(NOW, reservedSliding).index,
      }),
    },
    {
      decision: "… with a `ban`",
      before: [decide(reservedBan)],
      measured: adjust({ ...reservedBan, cost: -1 }),
    },
    { decision: "`concurrent`, admitted", measured: decide(slots) },
    {
      decision: "`concurrent`, denied or only checked",
      before: [decide(slots)],
      measured: decide({ ...slots, slot: 2 }),
    },
    {
      decision: "`concurrent`, a renewal of a slot",
      before: [decide(slots)],
      measured: adjust({ ...slots, cost: 0 }),
    },
    {
      decision: "`concurrent`, the return of a slot",
      before: [decide(slots)],
      measured: giveBack(slots, 1),
    },
    after(1, "a [block](from-memory.md#leases)", block),
    {
      decision: "a block that must be smaller than requested",
      before: [decide({ ...block, cost: 600 })],
      measured: decide(block),
    },
    {
      decision: "the return of a part of a block",
      before: [decide(returned)],
      measured: giveBack(returned, 1),
    },
    { decision: "`reset`", measured: { removed: [counter()] } },
  ];
}

/** Returns the rows of the table: a decision, and its commands with the clocks `edge` and `store`. */
export async function commandRows(redis: { host: string; port: number }): Promise<string[][]> {
  const rest = await startUpstashRest({ redis });
  try {
    const { url, token } = rest;
    const rows: string[][] = [];
    for (const clock of ["edge", "store"] as const) {
      const store = createUpstashEntries({ url, token, clock, timeoutMs: 10_000 });
      const run = (work: Work) => store.call([{ ...NOTHING, now: NOW, ...work }]);
      // The first call loads the script.
      await run({});
      for (const [index, { decision, before = [], measured }] of cases().entries()) {
        for (const each of before) await run(each);
        const { commands } = await run(measured);
        rows[index] ??= [decision];
        rows[index]?.push(String(commands));
      }
    }
    return rows;
  } finally {
    await rest.stop();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const redis = await startRedis();
  try {
    const head = [
      "commands of a decision in a call of its own",
      '`clock: "edge"`',
      '`clock: "store"`',
    ];
    console.log(markdownTable([head, ...(await commandRows(redis))]));
  } finally {
    await redis.stop();
  }
}
