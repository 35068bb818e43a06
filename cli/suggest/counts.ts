import { type Windows, windowAt } from "../../src/engine/counter.ts";
import { hasSucceeded, type LogRequest } from "../logs/log-request.ts";
import { LoudClients } from "../replay/loud-clients.ts";

/** How often each number occurs. */
export class NumberCounts {
  /** How many numbers there are. */
  total = 0;
  /** The highest number; 0 if there is none. */
  max = 0;
  readonly #times = new Map<number, number>();

  add(value: number): void {
    this.total++;
    if (value > this.max) this.max = value;
    this.#times.set(value, (this.#times.get(value) ?? 0) + 1);
  }

  /**
   * Returns the lowest number that at least this share of all numbers does not exceed; 0 if there is no number.
   *
   * @param share above 0, at most 1
   */
  quantile(share: number): number {
    const wanted = Math.ceil(share * this.total);
    let seen = 0;
    for (const [value, times] of [...this.#times].sort(([one], [other]) => one - other)) {
      seen += times;
      if (seen >= wanted) return value;
    }
    return 0;
  }

  /** Returns the sum of the amounts by which the numbers exceed the limit. */
  excessOver(limit: number): number {
    let excess = 0;
    for (const [value, times] of this.#times) excess += Math.max(0, value - limit) * times;
    return excess;
  }
}

/**
 * Counts the requests of each client in windows of one length. The windows begin and end like Weir's. Clients have
 * numbers from 0 on.
 */
class WindowCounter {
  /** The requests of each pair of a client and a window. */
  readonly counts = new NumberCounts();
  /** The most requests of each client in one window. */
  readonly busiest: number[] = [];
  readonly #windows: Windows;
  #endsAt = Number.NEGATIVE_INFINITY;
  /** The number of the current window in the order of the windows. */
  #current = 0;
  /** The number of the last window in which each client sent a request, and its requests in that window. */
  readonly #lastWindow: number[] = [];
  readonly #lastCount: number[] = [];

  constructor(windows: Windows) {
    this.#windows = windows;
  }

  /**
   * Counts a request. The requests come in the order of their times.
   *
   * @returns the number of the client's requests in the current window
   */
  add(client: number, at: number): number {
    if (at >= this.#endsAt) this.#begin(at);
    if (this.#lastWindow[client] !== this.#current) {
      this.#endWindowOf(client);
      this.#lastWindow[client] = this.#current;
      this.#lastCount[client] = 0;
    }
    const count = (this.#lastCount[client] as number) + 1;
    this.#lastCount[client] = count;
    if (count > (this.busiest[client] ?? 0)) this.busiest[client] = count;
    return count;
  }

  /** Ends the windows of all clients. Call it after the last request. */
  end(): void {
    for (let client = 0; client < this.#lastCount.length; client++) this.#endWindowOf(client);
  }

  #endWindowOf(client: number): void {
    const count = this.#lastCount[client];
    if (count !== undefined) this.counts.add(count);
  }

  #begin(at: number): void {
    this.#endsAt = windowAt(at, this.#windows).endsAt;
    this.#current++;
  }
}

/** The maximum number of clients. With two windows, each takes about 250 bytes. */
const MAX_CLIENTS = 2_000_000;

/** Counts requests by client and window. */
export class ClientCounts {
  requests = 0;
  /** Requests of clients that came after the first two million. */
  leftOut = 0;
  /** The requests of each client, and those that succeeded. */
  readonly requestsOf: number[] = [];
  readonly succeededOf: number[] = [];
  /** One for each window; the shortest window first. */
  readonly windows: readonly WindowCounter[];
  /** The clients with the most requests in one of the shortest windows. */
  readonly loud = new LoudClients<number>();
  readonly #maxClients: number;
  /** The number of each client, by its identity. */
  readonly #numbers = new Map<string, number>();

  constructor(windows: readonly Windows[], maxClients = MAX_CLIENTS) {
    this.windows = windows.map((window) => new WindowCounter(window));
    this.#maxClients = maxClients;
  }

  get clients(): number {
    return this.#numbers.size;
  }

  /**
   * Counts a request. The requests come in the order of their times.
   *
   * @param identity a text that is different for every client
   * @param shown returns the client as reports show it
   */
  add(request: LogRequest, identity: string, shown: () => string): void {
    const client = this.#numberOf(identity);
    if (client === undefined) {
      this.leftOut++;
      return;
    }
    this.requests++;
    this.requestsOf[client] = (this.requestsOf[client] ?? 0) + 1;
    this.succeededOf[client] = (this.succeededOf[client] ?? 0) + (hasSucceeded(request) ? 1 : 0);
    const [shortest, ...others] = this.windows as [WindowCounter, ...WindowCounter[]];
    const count = shortest.add(client, request.at);
    for (const window of others) window.add(client, request.at);
    this.loud.add(client, count, request, shown);
  }

  /** Ends all windows. Call it after the last request. */
  finish(): void {
    for (const window of this.windows) window.end();
  }

  #numberOf(identity: string): number | undefined {
    const known = this.#numbers.get(identity);
    if (known !== undefined) return known;
    const { size } = this.#numbers;
    if (size >= this.#maxClients) return undefined;
    this.#numbers.set(identity, size);
    return size;
  }
}
