import { zipf } from "../load/zipf.ts";
import type { Random } from "./random.ts";

/** A future request. */
export interface Arrival {
  /** Milliseconds after the start. */
  readonly atMs: number;
  readonly client: number;
}

/** Requests that arrive at fixed times, even if earlier requests have no answer yet. */
export interface OpenTraffic {
  readonly kind: "open";
  /** Ordered by time. */
  readonly arrivals: Iterable<Arrival>;
  readonly durationMs: number;
}

/** Requests with a fixed concurrency: each answer lets the next request start. */
export interface ClosedTraffic {
  readonly kind: "closed";
  /** The client of each request. */
  readonly clients: readonly number[];
  readonly concurrency: number;
  /**
   * The time from a decision to the next request, in milliseconds. It represents the origin's work.
   */
  readonly handlingMs: number;
}

export type Traffic = OpenTraffic | ClosedTraffic;

/** Returns the requests per second at a given time, in milliseconds after the start. */
export type Rate = (atMs: number) => number;

/** Yields the times of independent requests at a changing rate: a Poisson process, by thinning. */
export function* poisson(
  rate: Rate,
  peakPerSecond: number,
  durationMs: number,
  random: Random,
): Generator<number> {
  const meanMs = 1000 / peakPerSecond;
  for (let at = random.exponential(meanMs); at < durationMs; at += random.exponential(meanMs)) {
    if (random.chance(rate(at) / peakPerSecond)) yield at;
  }
}

export function constantRate(perSecond: number): Rate {
  return () => perSecond;
}

/** The rate is twice the mean in the first half of each period, and 0 in the second half. */
export function onOffRate(meanPerSecond: number, periodMs: number): Rate {
  return (at) => (at % periodMs < periodMs / 2 ? 2 * meanPerSecond : 0);
}

/**
 * The rate follows a cosine from 0 to twice the mean and back, like traffic by day and by night.
 */
export function waveRate(meanPerSecond: number, periodMs: number): Rate {
  return (at) => meanPerSecond * (1 - Math.cos((2 * Math.PI * at) / periodMs));
}

/** Yields the times of repeated bursts. A burst has `size` requests within 100 ms. */
export function* bursts(
  size: number,
  meanPerSecond: number,
  durationMs: number,
  random: Random,
): Generator<number> {
  const everyMs = (1000 * size) / meanPerSecond;
  for (let at = 0; at < durationMs; at += everyMs) {
    const times = Array.from({ length: size }, () => at + 100 * random.uniform());
    yield* times.sort((a, b) => a - b);
  }
}

/** Yields a request for each time, with the next client. */
export function* arrivalsOf(nextClient: () => number, times: Iterable<number>): Generator<Arrival> {
  for (const atMs of times) yield { atMs, client: nextClient() };
}

export function oneClient(): () => number {
  return () => 0;
}

/** Returns a function that draws one of `count` clients, all with the same probability. */
export function uniformClients(count: number, random: Random): () => number {
  return () => random.below(count);
}

/** Returns a function that draws clients by Zipf's law; see {@link zipf}. */
export function zipfClients(keys: number, exponent: number, seed: number): () => number {
  const clients = zipf({ keys, exponent, count: 100_000, seed });
  let next = 0;
  return () => clients[next++ % clients.length] as number;
}
