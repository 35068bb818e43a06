import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { Random } from "./random.ts";
import type { Arrival } from "./traffic.ts";

/** Common Log Format, to which Combined only adds: who, identity, user, [when], "request", ... */
const LINE =
  /^(\S+) \S+ .*?\[(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d\d)(\d\d)\] "/;

const SECOND_MS = 1000;

/** What an access log tells of requests. */
export interface AccessLog {
  /** From the first one's second on, in the order of time. */
  readonly arrivals: readonly Arrival[];
  readonly clients: number;
  /** To the end of the last one's second. */
  readonly durationMs: number;
  /** Lines that are none of the format. */
  readonly unreadable: number;
}

/** @throws {Error} that says what is wrong with the file */
export async function readAccessLog(file: string, random: Random): Promise<AccessLog> {
  try {
    return await parseAccessLog(createInterface({ input: createReadStream(file) }), random);
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * Logs are written when responses end, so lines need not be in the order of their times; and times
 * are whole seconds, so within one the moment is chance.
 *
 * @throws {Error} when there is no line of the format
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
    const read = readLine(line);
    if (!read) {
      unreadable++;
      continue;
    }
    const client = clients.get(read.address) ?? clients.size;
    clients.set(read.address, client);
    requests.push({ atMs: read.at + SECOND_MS * random.uniform(), client });
    first = Math.min(first, read.at);
    last = Math.max(last, read.at);
  }
  if (requests.length === 0) {
    throw new Error("no line of it is in Common or Combined Log Format");
  }
  const arrivals = requests
    .map(({ atMs, client }) => ({ atMs: atMs - first, client }))
    .sort((a, b) => a.atMs - b.atMs);
  return { arrivals, clients: clients.size, durationMs: last - first + SECOND_MS, unreadable };
}

/** Who asked, and when: milliseconds since the Unix epoch. */
function readLine(line: string): { address: string; at: number } | undefined {
  const [, address, day, month, year, time, hours, minutes] = LINE.exec(line) ?? [];
  const at = Date.parse(`${day} ${month} ${year} ${time} ${hours}${minutes}`);
  return address === undefined || Number.isNaN(at) ? undefined : { address, at };
}
