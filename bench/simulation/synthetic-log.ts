import type { Random } from "./random.ts";

const HOURS = 6;
const VISITORS = 400;
const VISITS = 600;
/** The requests of a page, including its images, styles and scripts. */
const REQUESTS_PER_PAGE = 12;
const HOUR_S = 3600;

/**
 * Generates the access log of a small site, for a simulation without a real log. Visitors cause a
 * burst of requests with every page. A monitor sends a request every ten seconds. A scraper sends
 * 2.5 requests a second for half an hour.
 *
 * @returns lines in Common Log Format; as in real logs, some lines are not ordered by time
 */
export function* syntheticLog(random: Random): Generator<string> {
  const requests: { atS: number; address: string }[] = [];
  for (let visit = 0; visit < VISITS; visit++) {
    const address = `198.51.${random.below(2)}.${random.below(VISITORS / 2)}`;
    let atS = HOURS * HOUR_S * random.uniform();
    for (let pages = 1 + random.below(4); pages > 0; pages--) {
      for (let request = 0; request < REQUESTS_PER_PAGE; request++) {
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
