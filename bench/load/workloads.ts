import { clientAddress, LIMITED_PATH, type OutgoingRequest } from "./clients.ts";
import { zipf } from "./zipf.ts";

/** A sequence of requests that is sent as fast as the connections allow. */
export interface Workload {
  readonly name: string;
  readonly title: string;
  /** The limit of each client in a window. */
  readonly limit: number;
  /** The number of requests in a round: `full` in a whole run, `quick` in a quick run. */
  readonly count: { readonly full: number; readonly quick: number };
  /** Whether all requests of a round are sent at once, each over a connection of its own. */
  readonly isBurst?: true;
  /** Returns one client index for each of `count` requests. */
  readonly clients: (count: number, round: number) => number[];
}

const ZIPF_EXPONENT = 1.1;

export const WORKLOADS: readonly Workload[] = [
  {
    name: "hot",
    title: "one hot key under its limit",
    limit: 10_000,
    count: { full: 3000, quick: 300 },
    clients: (count) => Array.from({ length: count }, () => 0),
  },
  {
    name: "zipf-1k",
    title: "1,000 keys, Zipf 1.1, limit 50",
    limit: 50,
    count: { full: 3000, quick: 500 },
    clients: (count, seed) => zipf({ keys: 1000, exponent: ZIPF_EXPONENT, count, seed }),
  },
  {
    name: "zipf-100k",
    title: "100,000 keys, Zipf 1.1, limit 50",
    limit: 50,
    count: { full: 1500, quick: 300 },
    clients: (count, seed) => zipf({ keys: 100_000, exponent: ZIPF_EXPONENT, count, seed }),
  },
  {
    name: "abuser",
    title: "one abuser, limit 100",
    limit: 100,
    count: { full: 3000, quick: 500 },
    clients: (count) => Array.from({ length: count }, () => 0),
  },
  {
    name: "cold",
    title: "a new client with each request, limit 50",
    limit: 50,
    count: { full: 3000, quick: 300 },
    clients: (count) => Array.from({ length: count }, (_, index) => index),
  },
  {
    name: "burst",
    title: "a burst of one client, limit 50",
    limit: 50,
    count: { full: 1000, quick: 200 },
    isBurst: true,
    clients: (count) => Array.from({ length: count }, () => 0),
  },
  {
    name: "burst-clients",
    title: "a burst of different clients, limit 50",
    limit: 50,
    count: { full: 1000, quick: 200 },
    isBurst: true,
    clients: (count) => Array.from({ length: count }, (_, index) => index),
  },
];

/** Returns the requests of one round. */
export function requestsOf(workload: Workload, count: number, round: number): OutgoingRequest[] {
  return workload
    .clients(count, round)
    .map((index) => ({ client: clientAddress(round, index), path: LIMITED_PATH }));
}
