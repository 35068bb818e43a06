import type { LogRequest } from "../logs/log-request.ts";
import { ownText } from "../logs/text-cache.ts";
import { hasSucceeded } from "../tally/client-ranking.ts";
import { compare, FrequentTexts } from "../tally/frequent-texts.ts";
import type { RequestClient } from "./client-reader.ts";

/** A client that was among the loudest at some time. */
export interface LoudEntry {
  /** The client as reports show it. */
  readonly client: string;
  /** The hash of the client's identity. */
  readonly high: number;
  readonly low: number;
  /** The most requests in one window, and when that window began. */
  busiest: number;
  busiestStart: number;
  /** Requests since the client was among the loudest. */
  requests: number;
  succeeded: number;
  readonly userAgents: FrequentTexts;
  readonly paths: FrequentTexts;
}

/** How many clients are observed, at least, and at most twice as many. */
const OBSERVED = 512;
/** The maximum length of a client's text in a report. */
const MAX_CLIENT = 200;

/**
 * Observes the clients with the most requests in one window. The busiest windows are exact. The other facts miss
 * the requests that a client sent before it was among the 512 loudest.
 */
export class LoudClients {
  readonly #entries = new Map<string, LoudEntry>();
  /** A client with at most this number of requests in a window is not among the loudest. */
  #threshold = 0;

  /**
   * @param count the requests of this client in the current window, with this one
   * @param windowStart when the current window began
   */
  add(request: LogRequest, client: RequestClient, count: number, windowStart: number): void {
    let entry = this.#entries.get(client.identity);
    if (!entry) {
      if (count <= this.#threshold) return;
      entry = this.#insert(client);
    }
    entry.requests++;
    if (count > entry.busiest) {
      entry.busiest = count;
      entry.busiestStart = windowStart;
    }
    if (hasSucceeded(request)) entry.succeeded++;
    if (request.userAgent !== undefined) entry.userAgents.add(request.userAgent);
    entry.paths.add(`${request.method} ${withoutQuery(request.target)}`);
  }

  /** Returns the clients with the busiest windows, the loudest first. */
  top(count: number): LoudEntry[] {
    return this.#sorted()
      .slice(0, count)
      .map(([, entry]) => entry);
  }

  #insert({ identity, hash: { high, low }, shown }: RequestClient): LoudEntry {
    if (this.#entries.size >= 2 * OBSERVED) this.#shrink();
    const entry: LoudEntry = {
      ...{ client: ownText(shown().slice(0, MAX_CLIENT)), high, low },
      ...{ busiest: 0, busiestStart: 0, requests: 0, succeeded: 0 },
      ...{ userAgents: new FrequentTexts(), paths: new FrequentTexts() },
    };
    this.#entries.set(ownText(identity), entry);
    return entry;
  }

  #shrink(): void {
    const quieter = this.#sorted().slice(OBSERVED);
    this.#threshold = quieter[0]?.[1].busiest ?? 0;
    for (const [client] of quieter) this.#entries.delete(client);
  }

  #sorted(): [string, LoudEntry][] {
    return [...this.#entries].sort(
      ([, one], [, other]) =>
        other.busiest - one.busiest ||
        other.requests - one.requests ||
        compare(one.client, other.client),
    );
  }
}

/** A query may contain credentials. */
function withoutQuery(target: string): string {
  const end = target.indexOf("?");
  return end === -1 ? target : target.slice(0, end);
}
