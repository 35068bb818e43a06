import { zipfKeys } from "../bench/load/zipf.ts";
import { Random } from "../bench/simulation/random.ts";
import type { OnError } from "./rules.ts";

/** A request that the load generator sends. */
export interface OutgoingRequest {
  readonly kind: string;
  readonly method: "GET" | "HEAD" | "POST";
  readonly path: string;
  readonly client: string;
  /** What Weir does with the request if it stays undecided. */
  readonly onError: OnError;
}

interface Kind {
  readonly name: string;
  /** How many of 1,000 requests are of this kind, on average. */
  readonly weight: number;
  readonly onError: OnError;
  readonly draw: (
    random: Random,
  ) => Pick<OutgoingRequest, "path" | "client"> & { readonly method?: OutgoingRequest["method"] };
}

const CLIENTS = 5000;
const ABUSERS = 20;

/** Unusual spellings of the path `/leased`, and paths that match no rule. */
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

/** Clients are drawn by Zipf's law; client 0 sends the most requests. */
const clientIndexAt = zipfKeys(CLIENTS, 1.1);

const KINDS: readonly Kind[] = [
  kind("leased", 300, "open", (random) => ({ path: "/leased", client: knownClient(random) })),
  kind("exact", 120, "closed", (random) => ({ path: "/exact", client: knownClient(random) })),
  kind("windows", 120, "open", (random) => {
    return { path: `/windows/${random.below(1_000_000)}`, client: knownClient(random) };
  }),
  kind("local", 120, "local", (random) => ({ path: "/local", client: knownClient(random) })),
  kind("shared", 100, "closed", (random) => ({ path: "/shared", client: knownClient(random) })),
  kind("abuse", 100, "closed", (random) => {
    return { path: "/abuse", client: `10.255.0.${random.below(ABUSERS)}`, method: "POST" };
  }),
  kind("flood", 50, "open", (random) => ({ path: "/leased", client: freshClient(random) })),
  kind("local flood", 10, "local", (random) => ({ path: "/local", client: freshClient(random) })),
  kind("head", 30, "open", (random) => {
    return { path: "/leased", client: knownClient(random), method: "HEAD" };
  }),
  kind("odd path", 30, "none", (random) => {
    const path = ODD_PATHS[random.below(ODD_PATHS.length)] as string;
    return { path, client: knownClient(random) };
  }),
  kind("no rule", 20, "none", (random) => ({ path: "/free", client: knownClient(random) })),
];

/** Creates an endless series of requests. The same seed gives the same requests. */
export function createTraffic(seed: number): () => OutgoingRequest {
  const random = new Random(seed, "traffic");
  const total = KINDS.reduce((sum, { weight }) => sum + weight, 0);
  return () => {
    let left = random.below(total);
    for (const { name, weight, onError, draw } of KINDS) {
      left -= weight;
      if (left < 0) return { kind: name, onError, method: "GET", ...draw(random) };
    }
    throw new RangeError("The random number is not below the sum of the weights.");
  };
}

function kind(name: string, weight: number, onError: OnError, draw: Kind["draw"]): Kind {
  return { name, weight, onError, draw };
}

/** Draws one of the clients that send many requests. */
function knownClient(random: Random): string {
  const index = clientIndexAt(random.uniform());
  return `10.0.${index >>> 8}.${index & 255}`;
}

/** Draws one of eight million clients, so nearly every request has a new client. */
function freshClient(random: Random): string {
  const number = random.below(2 ** 23);
  return `11.${number >>> 16}.${(number >>> 8) & 255}.${number & 255}`;
}
