import type { LogRequest } from "../../logs/log-request.ts";
import type { ClientHash } from "../../tally/client-hash.ts";
import { ClientRanking, type RankedClient } from "../../tally/client-ranking.ts";
import { ClientTable } from "../../tally/client-table.ts";
import type { RequestTexts } from "../../tally/request-texts.ts";
import type { Counts, DeniedClient, Frequent } from "../report.ts";

/** How many clients a list of a report has. */
export const LISTED_CLIENTS = 20;
/** How many user agents, and how many paths, a client in a report has. */
const LISTED_TEXTS = 3;

/** The columns of {@link ClientCounts.denied}. */
export const DENIED = 0;
export const DENIED_BEFORE = 1;
export const NEWLY_DENIED_SUCCEEDED = 2;

/** The part of a report about numbers of clients. */
export type CountsOfClients = Pick<
  Counts,
  "clients" | "clientsDenied" | "isEstimate" | "isDeniedEstimate"
>;

interface Sizes {
  /** Up to this number of clients, numbers of clients are exact. */
  readonly maxClients?: number | undefined;
  /** How many clients are ranked. */
  readonly ranked: number;
  /** Shared by rankings that count the same requests. */
  readonly texts: RequestTexts;
}

/** Counts clients and their requests, and ranks the clients with denied requests. */
export class ClientCounts {
  /** The requests of all clients, in one column. */
  readonly seen: ClientTable;
  /**
   * The denied requests of clients that have any. They have a table of their own, so that few denied clients among
   * very many are counted exactly.
   */
  readonly denied: ClientTable;
  readonly #ranking: ClientRanking;

  /** @param compared the rankings of a comparison, whose clients have to be counted under both configurations */
  constructor({ maxClients, ranked, texts }: Sizes, compared: readonly ClientRanking[] = []) {
    const ranking = new ClientRanking(ranked, texts);
    const all = [ranking, ...compared];
    this.#ranking = ranking;
    this.seen = new ClientTable(1, () => entriesOf(all), maxClients);
    const columns = compared.length === 0 ? 1 : 3;
    this.denied = new ClientTable(columns, () => entriesOf(compared), maxClients);
  }

  /** Up to this number of clients, their numbers are exact. */
  get exactClients(): number {
    return this.seen.maxClients;
  }

  addDenied(client: string, hash: ClientHash, request: LogRequest): void {
    this.denied.increment(hash, DENIED);
    const isRanked = this.#ranking.add(client, hash, request);
    if (isRanked && this.seen.isEstimate) this.seen.pin(hash);
  }

  /** @param column the configuration of whose denied requests a client has to have any */
  report(column = DENIED): CountsOfClients {
    return {
      clients: this.seen.clients(),
      clientsDenied: this.denied.clients((...counts) => (counts[column] as number) > 0),
      isEstimate: this.seen.isEstimate,
      isDeniedEstimate: this.denied.isEstimate,
    };
  }

  /** Returns the clients with the most denied requests. */
  mostDenied(): DeniedClient[] {
    return this.#ranking.top(LISTED_CLIENTS).map((client) => ({
      client: client.client,
      requests: this.requestsOf(client),
      denied: client.count - client.error,
      deniedSucceeded: client.succeeded,
      error: client.error,
      firstDenied: new Date(client.first).toISOString(),
      lastDenied: new Date(client.last).toISOString(),
      ...textsOf(client),
    }));
  }

  /**
   * Returns the number of a client's requests. Among very many clients, a client may not have been counted from its
   * first request on, but at least its ranked requests were.
   */
  requestsOf(client: RankedClient): number {
    return Math.max(this.seen.countOf(client, 0), client.count - client.error);
  }
}

/** Returns the most frequent user agents and paths of a client. */
export function textsOf({ userAgents, paths }: RankedClient): {
  userAgents: readonly Frequent[];
  paths: readonly Frequent[];
} {
  return {
    // A request without a user agent has an empty text.
    userAgents: userAgents
      .top(LISTED_TEXTS + 1)
      .filter(({ text }) => text !== "")
      .slice(0, LISTED_TEXTS),
    paths: paths.top(LISTED_TEXTS),
  };
}

function entriesOf(rankings: readonly ClientRanking[]): RankedClient[] {
  return rankings.flatMap((ranking) => [...ranking.entries()]);
}
