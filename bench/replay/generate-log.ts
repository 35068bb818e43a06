import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import { zipfKeys } from "../load/zipf.ts";
import { Random } from "../simulation/random.ts";

const BEGIN = Date.UTC(2026, 10, 22);
const DAY_MS = 86_400_000;
/** How far lines may be out of order, in milliseconds. */
const MAX_DELAY_MS = 30_000;
const CLIENTS = 50_000;
const PATHS = 2000;
/** The log is written in blocks, as servers do. */
const BLOCK = 1 << 20;

const STATUSES = [200, 200, 200, 200, 200, 200, 304, 302, 404, 401];
const AGENTS = Array.from(
  { length: 200 },
  (_, index) =>
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${100 + (index % 40)}.0.${index}.0 Safari/537.36`,
);

/**
 * Writes the access log of one day in Combined Log Format. Few clients send most requests, by Zipf's law. The
 * lines are out of order by up to 30 seconds, because a server writes a line when the response ends.
 *
 * @param file the file to create
 * @param seed the same seed gives the same log
 */
export async function generateLog(file: string, lines: number, seed: number): Promise<void> {
  const random = new Random(seed, "log");
  const clientAt = zipfKeys(CLIENTS, 1.1);
  const pathAt = zipfKeys(PATHS, 1);
  const stream = createWriteStream(file);
  let block = "";
  for (let index = 0; index < lines; index++) {
    const at = BEGIN + (index / lines) * DAY_MS - random.uniform() * MAX_DELAY_MS;
    const client = clientAt(random.uniform());
    const path = pathAt(random.uniform());
    const status = STATUSES[random.below(STATUSES.length)];
    const request = `${path === 7 ? "POST /login" : `GET /items/${path}?page=${random.below(9)}`} HTTP/1.1`;
    block += `${addressOf(client)} - - [${timeOf(at)}] "${request}" ${status} ${random.below(50_000)} "https://example.com/" "${AGENTS[client % AGENTS.length]}"\n`;
    if (block.length < BLOCK) continue;
    if (!stream.write(block)) await once(stream, "drain");
    block = "";
  }
  stream.end(block);
  await finished(stream);
}

/** Addresses of private networks and of documentation. One client of four has an IPv6 address. */
function addressOf(client: number): string {
  if (client % 4 === 0) return `2001:db8:${client.toString(16)}::1`;
  return `10.${client % 200}.${(client >> 8) % 256}.${client % 256}`;
}

const texts = new Map<number, string>();

/** Returns a time as in Common Log Format. */
function timeOf(at: number): string {
  const second = Math.floor(at / 1000);
  const known = texts.get(second);
  if (known !== undefined) return known;
  const [, day, month, year, time] = new Date(second * 1000).toUTCString().split(" ");
  const text = `${day}/${month}/${year}:${time} +0000`;
  if (texts.size > 1000) texts.clear();
  texts.set(second, text);
  return text;
}
