import type { LogRequest } from "../logs/log-request.ts";
import { hasSucceeded } from "../tally/client-ranking.ts";
import { type Series, TimeAxis } from "../tally/time-axis.ts";
import { ClientCounts } from "./client-counts.ts";
import type { RequestClient } from "./client-reader.ts";
import { LoudClients } from "./loud-clients.ts";
import { botCategoryOf, VerifiedBots } from "./verified-bots.ts";
import { type Boundaries, WindowCounter } from "./window-counter.ts";

/** How many clients are counted exactly with one or two windows. Each of them takes up to 100 bytes. */
const MAX_CLIENTS = 2 ** 21;

export interface SuggestTallyOptions {
  /** Count verified bots apart. */
  readonly separateBots: boolean;
  /** How many clients are counted exactly; a power of 2. */
  readonly maxClients?: number;
}

/** Counts requests by client and window. */
export class SuggestTally {
  /** Requests without those of verified bots. */
  requests = 0;
  /** For each client: its busiest window of each length, then its requests, then those that succeeded. */
  readonly clients: ClientCounts;
  /** One for each window, in the order of the windows. */
  readonly windows: readonly WindowCounter[];
  readonly bots: VerifiedBots;
  readonly loud = new LoudClients();
  readonly axis = new TimeAxis();
  readonly series: Series = this.axis.series();
  readonly #separateBots: boolean;

  /** @param windows the shortest window first */
  constructor(
    windows: readonly [Boundaries, ...Boundaries[]],
    { separateBots, maxClients = maxClientsFor(windows.length) }: SuggestTallyOptions,
  ) {
    this.#separateBots = separateBots;
    this.clients = new ClientCounts(windows.length + 2, maxClients);
    this.windows = windows.map(
      (window, index) =>
        new WindowCounter(window, maxClients, (high, low, requests, succeeded) =>
          this.#endWindow(index, high, low, requests, succeeded),
        ),
    );
    this.bots = new VerifiedBots(new WindowCounter(windows[0], maxClients));
  }

  /** Counts a request. The requests come in the order of their times. */
  add(request: LogRequest, client: RequestClient): void {
    const { at } = request;
    const bot = this.#separateBots ? botCategoryOf(request.cf) : undefined;
    if (bot !== undefined) {
      this.bots.add(bot, client.hash, at);
      return;
    }
    const { high, low } = client.hash;
    const shortest = this.windows[0] as WindowCounter;
    const count = shortest.add(high, low, at, hasSucceeded(request));
    for (let index = 1; index < this.windows.length; index++) {
      this.windows[index]?.add(high, low, at);
    }
    this.loud.add(request, client, count, shortest.startsAt);
    this.requests++;
    const step = this.axis.stepOf(at);
    this.series[step] = (this.series[step] as number) + 1;
  }

  /** Ends all windows. Call it after the last request. */
  finish(): void {
    for (const counter of this.windows) counter.end();
  }

  #endWindow(index: number, high: number, low: number, requests: number, succeeded: number): void {
    const { clients } = this;
    clients.raiseLevel((this.windows[index] as WindowCounter).level);
    const entry = clients.entryOf(high, low);
    if (entry < 0) return;
    const { counts, width } = clients;
    const first = entry * width;
    if (requests > (counts[first + index] as number)) counts[first + index] = requests;
    if (index > 0) return;
    counts[first + width - 2] = (counts[first + width - 2] as number) + requests;
    counts[first + width - 1] = (counts[first + width - 1] as number) + succeeded;
  }
}

/** More windows take more memory for each client. */
function maxClientsFor(windows: number): number {
  if (windows <= 2) return MAX_CLIENTS;
  return windows <= 4 ? MAX_CLIENTS / 2 : MAX_CLIENTS / 4;
}
