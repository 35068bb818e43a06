import type { LogRequest } from "../logs/log-request.ts";
import type { ClientHash } from "../tally/client-hash.ts";
import { ClientRanking, type RankedClient } from "../tally/client-ranking.ts";
import { ClientTable } from "../tally/client-table.ts";
import type { DeniedClient } from "./report.ts";

/** How many clients a report lists. */
export const LISTED_CLIENTS = 20;
/** How many user agents, and how many paths, a client in a report has. */
export const LISTED_TEXTS = 3;

/** Counts the requests of clients, and ranks the clients with denied requests. */
export class DeniedClients {
  /** All clients. Its only column has the requests. */
  readonly seen: ClientTable;
  readonly #ranking: ClientRanking;

  /**
   * @param size how many clients are ranked at least
   * @param others other rankings whose clients have to be counted
   */
  constructor(size: number, others: readonly ClientRanking[] = []) {
    const rankings = [new ClientRanking(size), ...others];
    this.#ranking = rankings[0] as ClientRanking;
    this.seen = new ClientTable(1, () => rankings.flatMap((each) => [...each.entries()]));
  }

  /** Counts a denied request. Each request must be added to `seen` too. */
  addDenied(client: string, hash: ClientHash, request: LogRequest): void {
    this.#ranking.add(client, hash, request);
    if (this.seen.isEstimate) this.seen.pin(hash);
  }

  /** Returns the clients with the most denied requests. */
  top(): DeniedClient[] {
    return this.#ranking.top(LISTED_CLIENTS).map((client) => ({
      client: client.client,
      requests: requestsOf(this.seen, client),
      denied: client.count,
      deniedSucceeded: client.succeeded,
      error: client.error,
      firstDenied: new Date(client.first).toISOString(),
      lastDenied: new Date(client.last).toISOString(),
      userAgents: client.userAgents.top(LISTED_TEXTS),
      paths: client.paths.top(LISTED_TEXTS),
    }));
  }
}

/**
 * Returns the number of a client's requests. If there are very many clients, a client may not have been counted
 * from its first request on, but at least its denied requests were.
 */
export function requestsOf(seen: ClientTable, client: RankedClient): number {
  return Math.max(seen.countOf(client, 0), client.count - client.error);
}
