import { zipf } from "../load/zipf.ts";
import type { Random } from "./random.ts";

/** A request to come: when, in milliseconds after the beginning, and which client's. */
export interface Arrival {
  readonly atMs: number;
  readonly client: number;
}

/** Requests that come whatever becomes of those before them, in the order of time. */
export interface OpenTraffic {
  readonly kind: "open";
  readonly arrivals: Iterable<Arrival>;
  readonly durationMs: number;
}

/** Requests of which so many are under way at a time: each waits for another to be answered. */
export interface ClosedTraffic {
  readonly kind: "closed";
  readonly clients: readonly number[];
  readonly concurrency: number;
  /** Between an answer and the next request, in milliseconds: what everything else takes. */
  readonly handlingMs: number;
}

export type Traffic = OpenTraffic | ClosedTraffic;

/** Requests per second at a moment, in milliseconds after the beginning. */
export type Rate = (atMs: number) => number;

/** Independent requests, at a rate that may change: Poisson's process, by thinning. */
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

export function steady(perSecond: number): Rate {
  return () => perSecond;
}

/** Half of the time twice the mean, and nothing in the other half. */
export function onAndOff(perSecond: number, periodMs: number): Rate {
  return (at) => (at % periodMs < periodMs / 2 ? 2 * perSecond : 0);
}

/** From nothing to twice the mean and back, as days and nights do. */
export function waves(perSecond: number, periodMs: number): Rate {
  return (at) => perSecond * (1 - Math.cos((2 * Math.PI * at) / periodMs));
}

/** So many requests within 100 ms, again and again. */
export function* bursts(
  size: number,
  perSecond: number,
  durationMs: number,
  random: Random,
): Generator<number> {
  const everyMs = (1000 * size) / perSecond;
  for (let at = 0; at < durationMs; at += everyMs) {
    const spread = Array.from({ length: size }, () => at + 100 * random.uniform());
    yield* spread.sort((a, b) => a - b);
  }
}

/** Says of each moment whose request it is. */
export function* of(clients: () => number, times: Iterable<number>): Generator<Arrival> {
  for (const atMs of times) yield { atMs, client: clients() };
}

export function oneClient(): () => number {
  return () => 0;
}

/** Any of so many clients, all alike. */
export function anyOf(clients: number, random: Random): () => number {
  return () => random.below(clients);
}

/** Some clients ask much more often than others; see {@link zipf}. */
export function uneven(keys: number, exponent: number, seed: number): () => number {
  const drawn = zipf({ keys, exponent, count: 100_000, seed });
  let next = 0;
  return () => drawn[next++ % drawn.length] as number;
}
