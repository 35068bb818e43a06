import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { Random } from "../../cli/simulation/random.ts";
import type { Arrival } from "./traffic.ts";

/**
 * The start of a line in Common Log Format: host, identity, user, [time], "request". Combined Log Format adds
 * fields at the end.
 */
const LINE =
  /^(\S+) \S+ .*?\[(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d\d)(\d\d)\] "/;

const SECOND_MS = 1000;

/** The requests of an access log. */
export interface AccessLog {
  /** Ordered by time. Time 0 is the start of the second in which the first request arrived. */
  readonly arrivals: readonly Arrival[];
  /** The number of different addresses. */
  readonly clients: number;
  /** The time from time 0 to the end of the second in which the last request arrived. */
  readonly durationMs: number;
  /** The number of lines that are in neither Common nor Combined Log Format. */
  readonly unreadable: number;
}

/**
 * @throws {Error} if the file cannot be read or has no line in a known format; the message names
 *   the file
 */
export async function readAccessLog(file: string, random: Random): Promise<AccessLog> {
  try {
    return await parseAccessLog(createInterface({ input: createReadStream(file) }), random);
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * Parses the lines of an access log. Servers write a line when the response ends, so the lines are not
 * always ordered by time. The times are whole seconds, so each request gets a random time in its second.
 *
 * @throws {Error} when no line is in Common or Combined Log Format
 */
export async function parseAccessLog(
  lines: AsyncIterable<string> | Iterable<string>,
  random: Random,
): Promise<AccessLog> {
  const clients = new Map<string, number>();
  const requests: Arrival[] = [];
  let unreadable = 0;
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for await (const line of lines) {
    if (line.trim() === "") continue;
    const entry = readLine(line);
    if (!entry) {
      unreadable++;
      continue;
    }
    const client = clients.get(entry.address) ?? clients.size;
    clients.set(entry.address, client);
    requests.push({ atMs: entry.at + SECOND_MS * random.uniform(), client });
    first = Math.min(first, entry.at);
    last = Math.max(last, entry.at);
  }
  if (requests.length === 0) {
    throw new Error("No line is in Common or Combined Log Format.");
  }
  const arrivals = requests
    .map(({ atMs, client }) => ({ atMs: atMs - first, client }))
    .sort((a, b) => a.atMs - b.atMs);
  return { arrivals, clients: clients.size, durationMs: last - first + SECOND_MS, unreadable };
}

/** Returns the address in a line, and its time in milliseconds since the Unix epoch. */
function readLine(line: string): { address: string; at: number } | undefined {
  const [, address, day, month, year, time, hours, minutes] = LINE.exec(line) ?? [];
  const at = Date.parse(`${day} ${month} ${year} ${time} ${hours}${minutes}`);
  return address === undefined || Number.isNaN(at) ? undefined : { address, at };
}
