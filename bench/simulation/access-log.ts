import { AccessLineParser } from "../../cli/logs/access-line.ts";
import type { LogRequest } from "../../cli/logs/log-request.ts";
import { openLogs } from "../../cli/logs/open-logs.ts";
import type { Random } from "./random.ts";
import type { Arrival } from "./traffic.ts";

const SECOND_MS = 1000;

/** The requests of an access log. */
export interface AccessLog {
  /** Ordered by time. Time 0 is the start of the second in which the first request arrived. */
  readonly arrivals: readonly Arrival[];
  /** The number of different addresses. */
  readonly clients: number;
  /** The time from time 0 to the end of the second in which the last request arrived. */
  readonly durationMs: number;
  /** The number of lines that are broken. */
  readonly unreadable: number;
}

/**
 * Reads a log in any format that `weir replay` reads.
 *
 * @throws {Error} if the file cannot be read or has no request with an address; the message names the file
 */
export async function readAccessLog(file: string, random: Random): Promise<AccessLog> {
  const logs = await openLogs({ files: [file] });
  const arrivals = new Arrivals(random);
  for await (const batch of logs.batches()) for (const request of batch) arrivals.add(request);
  try {
    return arrivals.log(logs.progress.broken);
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * Parses lines in Common or Combined Log Format, which need not be ordered by time.
 *
 * @throws {Error} when no line has a request
 */
export function parseAccessLog(lines: Iterable<string>, random: Random): AccessLog {
  const parser = new AccessLineParser(undefined);
  const arrivals = new Arrivals(random);
  let unreadable = 0;
  for (const line of lines) {
    const content = parser.parse(line);
    if (typeof content === "object") arrivals.add(content);
    else if (content !== undefined && line.trim() !== "") unreadable++;
  }
  return arrivals.log(unreadable);
}

/** Collects requests with an address. */
class Arrivals {
  readonly #random: Random;
  readonly #arrivals: Arrival[] = [];
  readonly #clients = new Map<string, number>();
  #first = Number.POSITIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;

  constructor(random: Random) {
    this.#random = random;
  }

  /** The times of most logs are whole seconds. A request at a whole second gets a random time in this second. */
  add({ at, ip }: LogRequest): void {
    if (ip === undefined) return;
    const client = this.#clients.get(ip) ?? this.#clients.size;
    this.#clients.set(ip, client);
    const second = Math.floor(at / SECOND_MS) * SECOND_MS;
    const atMs = at === second ? at + SECOND_MS * this.#random.uniform() : at;
    this.#arrivals.push({ atMs, client });
    this.#first = Math.min(this.#first, second);
    this.#last = Math.max(this.#last, second);
  }

  log(unreadable: number): AccessLog {
    if (this.#arrivals.length === 0) throw new Error("No line has a request with an address.");
    const arrivals = this.#arrivals
      .map(({ atMs, client }) => ({ atMs: atMs - this.#first, client }))
      .sort((a, b) => a.atMs - b.atMs);
    const durationMs = this.#last - this.#first + SECOND_MS;
    return { arrivals, clients: this.#clients.size, durationMs, unreadable };
  }
}
