import type { Random } from "./random.ts";

const HOURS = 6;
const VISITORS = 400;
const VISITS = 600;
/** Requests that a page comes to, with all that is on it. */
const PARTS = 12;
const HOUR_S = 3600;

/**
 * An access log such as a small site has, for who gives none: visits of some pages, each page a burst
 * of requests; a monitor that asks every ten seconds; and a scraper that is in a hurry for a while.
 *
 * @returns lines in Common Log Format, somewhat out of order as in real ones
 */
export function* madeUpLog(random: Random): Generator<string> {
  const requests: { atS: number; address: string }[] = [];
  for (let visit = 0; visit < VISITS; visit++) {
    const address = `198.51.${random.below(2)}.${random.below(VISITORS / 2)}`;
    let atS = HOURS * HOUR_S * random.uniform();
    for (let pages = 1 + random.below(4); pages > 0; pages--) {
      for (let part = 0; part < PARTS; part++) {
        requests.push({ atS: atS + random.exponential(0.5), address });
      }
      atS += random.exponential(40);
    }
  }
  for (let atS = 0; atS < HOURS * HOUR_S; atS += 10) requests.push({ atS, address: "192.0.2.1" });
  for (let atS = HOUR_S; atS < 1.5 * HOUR_S; atS += random.exponential(0.4)) {
    requests.push({ atS, address: "203.0.113.7" });
  }
  requests.sort((a, b) => a.atS - b.atS || (a.address < b.address ? -1 : 1));
  const begin = Date.UTC(2026, 0, 1, 6);
  for (const { atS, address } of requests) {
    const [, day, month, year, time] = new Date(begin + 1000 * (atS - random.below(3)))
      .toUTCString()
      .split(" ");
    yield `${address} - - [${day}/${month}/${year}:${time} +0000] "GET / HTTP/1.1" 200 1234`;
  }
}
