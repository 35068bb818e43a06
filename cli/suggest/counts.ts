import { type Windows, windowAt, windowStart } from "../../src/engine/counter.ts";
import { hasSucceeded, type LogRequest } from "../logs/log-request.ts";

/**
 * Counts the requests of each client in windows of one length. The windows begin and end like Weir's. Clients have
 * numbers from 0 on.
 */
export class WindowCounts {
  /** How many pairs of a client and a window have each number of requests. */
  readonly #times = new Map<number, number>();
  /** The most requests of each client in one window, and when that window began. */
  readonly busiest: number[] = [];
  readonly busiestStart: number[] = [];
  readonly #windows: Windows;
  #startsAt = Number.NEGATIVE_INFINITY;
  #endsAt = Number.NEGATIVE_INFINITY;
  /** The number of the current window in the order of the windows. */
  #current = 0;
  /** The number of the last window in which each client sent a request, and its requests in that window. */
  readonly #lastWindow: number[] = [];
  readonly #lastCount: number[] = [];

  constructor(windows: Windows) {
    this.#windows = windows;
  }

  /** Counts a request. The requests come in the order of their times. */
  add(client: number, at: number): void {
    if (at >= this.#endsAt) this.#begin(at);
    if (this.#lastWindow[client] !== this.#current) {
      this.#endWindowOf(client);
      this.#lastWindow[client] = this.#current;
      this.#lastCount[client] = 0;
    }
    const count = (this.#lastCount[client] as number) + 1;
    this.#lastCount[client] = count;
    if (count <= (this.busiest[client] ?? 0)) return;
    this.busiest[client] = count;
    this.busiestStart[client] = this.#startsAt;
  }

  /** Ends the windows of all clients. Call it after the last request. */
  end(): void {
    for (let client = 0; client < this.#lastCount.length; client++) this.#endWindowOf(client);
  }

  /** Returns how many requests are above a limit, in all windows of all clients. */
  excessOver(limit: number): number {
    let excess = 0;
    for (const [count, times] of this.#times) excess += Math.max(0, count - limit) * times;
    return excess;
  }

  #endWindowOf(client: number): void {
    const count = this.#lastCount[client];
    if (count !== undefined) this.#times.set(count, (this.#times.get(count) ?? 0) + 1);
  }

  #begin(at: number): void {
    const { index, endsAt } = windowAt(at, this.#windows);
    this.#startsAt = windowStart(this.#windows, index);
    this.#endsAt = endsAt;
    this.#current++;
  }
}

/** The maximum number of clients. With two windows, each takes about 300 bytes. */
const MAX_CLIENTS = 2_000_000;

/** Counts requests by client and window. */
export class ClientCounts {
  requests = 0;
  /** Requests of clients that came after the first two million. */
  leftOut = 0;
  /** The text, the requests and the succeeded requests of each client. */
  readonly texts: string[] = [];
  readonly requestsOf: number[] = [];
  readonly succeededOf: number[] = [];
  /** One for each window; the shortest window first. */
  readonly windows: readonly WindowCounts[];
  readonly #maxClients: number;
  /** The number of each client, by its identity. */
  readonly #numbers = new Map<string, number>();

  constructor(windows: readonly Windows[], maxClients = MAX_CLIENTS) {
    this.windows = windows.map((window) => new WindowCounts(window));
    this.#maxClients = maxClients;
  }

  get clients(): number {
    return this.#numbers.size;
  }

  /**
   * Counts a request. The requests come in the order of their times.
   *
   * @param identity a text that is different for every client
   * @param text the client as reports show it
   */
  add(request: LogRequest, identity: string, text: string): void {
    const client = this.#numberOf(identity, text);
    if (client === undefined) {
      this.leftOut++;
      return;
    }
    this.requests++;
    this.requestsOf[client] = (this.requestsOf[client] ?? 0) + 1;
    this.succeededOf[client] = (this.succeededOf[client] ?? 0) + (hasSucceeded(request) ? 1 : 0);
    for (const window of this.windows) window.add(client, request.at);
  }

  /** Ends all windows. Call it after the last request. */
  finish(): void {
    for (const window of this.windows) window.end();
  }

  #numberOf(identity: string, text: string): number | undefined {
    const known = this.#numbers.get(identity);
    if (known !== undefined) return known;
    const { size } = this.#numbers;
    if (size >= this.#maxClients) return undefined;
    this.#numbers.set(identity, size);
    this.texts.push(text);
    return size;
  }
}
