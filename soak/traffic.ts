import type { OnError } from "./rules.ts";

/** A request to be sent. */
export type Outgoing = {
  kind: string;
  method: "GET" | "HEAD" | "POST";
  path: string;
  client: string;
  /** What becomes of it when it is undecided. */
  onError: OnError;
};

type Kind = {
  name: string;
  /** How many of a thousand. */
  weight: number;
  onError: OnError;
  make(random: () => number): Pick<Outgoing, "path" | "client"> & { method?: Outgoing["method"] };
};

const CLIENTS = 5000;
const ABUSERS = 20;

/** Spellings of a path that come to the same, and some that come to nothing. */
const ODD_PATHS = [
  "//leased",
  "/leased/",
  "/%6Ceased",
  "/LEASED",
  "/x/../leased?a=1&a=2",
  "/leased;v=1",
  "/%zz/%00/leased",
  `/${"long/".repeat(200)}`,
];

/** Where ranks are drawn by Zipf's law, the most frequent first. */
const RANKS = upTo(CLIENTS, 1.1);

const KINDS: readonly Kind[] = [
  kind("leased", 300, "open", (random) => ({ path: "/leased", client: someone(random) })),
  kind("exact", 120, "closed", (random) => ({ path: "/exact", client: someone(random) })),
  kind("windows", 120, "open", (random) => {
    return { path: `/windows/${Math.floor(random() * 1e6)}`, client: someone(random) };
  }),
  kind("local", 120, "local", (random) => ({ path: "/local", client: someone(random) })),
  kind("shared", 100, "closed", (random) => ({ path: "/shared", client: someone(random) })),
  kind("abuse", 100, "closed", (random) => {
    return { path: "/abuse", client: `10.255.0.${Math.floor(random() * ABUSERS)}`, method: "POST" };
  }),
  kind("flood", 50, "open", (random) => ({ path: "/leased", client: anyone(random) })),
  kind("local flood", 10, "local", (random) => ({ path: "/local", client: anyone(random) })),
  kind("head", 30, "open", (random) => {
    return { path: "/leased", client: someone(random), method: "HEAD" };
  }),
  kind("odd path", 30, "none", (random) => {
    const path = ODD_PATHS[Math.floor(random() * ODD_PATHS.length)] as string;
    return { path, client: someone(random) };
  }),
  kind("no rule", 20, "none", (random) => ({ path: "/free", client: someone(random) })),
];

/** Makes requests without end, the same ones for the same seed. */
export function createTraffic(seed: number): () => Outgoing {
  const random = randomOf(seed);
  const total = KINDS.reduce((sum, { weight }) => sum + weight, 0);
  return () => {
    let left = random() * total;
    for (const { name, weight, onError, make } of KINDS) {
      left -= weight;
      if (left < 0) return { kind: name, onError, method: "GET", ...make(random) };
    }
    throw new RangeError("A random number is below 1.");
  };
}

function kind(name: string, weight: number, onError: OnError, make: Kind["make"]): Kind {
  return { name, weight, onError, make };
}

function someone(random: () => number): string {
  const rank = firstAbove(RANKS, random() * (RANKS.at(-1) as number));
  return `10.0.${rank >>> 8}.${rank & 255}`;
}

/** One of eight million, so hardly ever the same twice. */
function anyone(random: () => number): string {
  const number = Math.floor(random() * 2 ** 23);
  return `11.${number >>> 16}.${(number >>> 8) & 255}.${number & 255}`;
}

function upTo(count: number, exponent: number): Float64Array {
  const sums = new Float64Array(count);
  let sum = 0;
  for (let rank = 0; rank < count; rank++) sums[rank] = sum += (rank + 1) ** -exponent;
  return sums;
}

/** The first place in an ascending list with more than `value`, which is less than the last. */
function firstAbove(ascending: Float64Array, value: number): number {
  let [low, high] = [0, ascending.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] as number) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Mulberry32: good enough to draw requests by, and quick. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
