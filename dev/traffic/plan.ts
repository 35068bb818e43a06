import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

/** A request of an invented client. */
export interface PlannedRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Plans the requests of each second. */
export interface Plan {
  /** @param second the number of seconds since the start */
  requestsOf(second: number): PlannedRequest[];
}

/** A whole day of visitors passes in this time, in seconds. */
export const DAY_SECONDS = 24 * 60;

const VISITORS = 60;
const SEARCHES = ["shoes", "rain jacket", "tent", "headlamp", "map", "rope"];
const PAGES = ["/", "/products/17", "/products/42", "/help", "/cart"];

/**
 * Plans traffic that fits the rules of weir.config.ts. The same seed gives the same requests.
 *
 * - Visitors search, read and log in. Their number follows the hours of a day, which passes in 24 minutes.
 * - A shop searches with its API key, more often than the rule `search` allows.
 * - An attacker tries passwords in bursts, so that the rule `login` limits it.
 * - A crawler invents an API key for each search, which only the rule `search-address` notices.
 */
export function createPlan(seed: number): Plan {
  const random = xoroshiro128plus(seed);
  const pick = (count: number) => uniformInt(random, 0, count - 1);
  const chance = (percent: number) => pick(100) < percent;
  const search = () => `/search?q=${encodeURIComponent(SEARCHES[pick(SEARCHES.length)] ?? "")}`;

  function visit(): PlannedRequest {
    const ip = addressOf(pick(VISITORS));
    if (chance(6)) return request("POST", "/login", ip);
    return request("GET", chance(50) ? search() : (PAGES[pick(PAGES.length)] ?? "/"), ip);
  }

  return {
    requestsOf(second) {
      const requests: PlannedRequest[] = [];
      for (let left = visitsOf(second) + pick(3); left > 0; left--) requests.push(visit());
      const shop = { "x-api-key": "shop-4711" };
      if (second % 4 !== 0) requests.push(request("GET", search(), "192.0.2.10", shop));
      if (second % 2 === 0) requests.push(request("GET", search(), "192.0.2.10", shop));
      if (second % 90 < 20) {
        for (let left = 1 + pick(4); left > 0; left--) {
          requests.push(request("POST", "/login", "203.0.113.66"));
        }
      }
      if (second % 240 < 120) {
        for (let left = 3; left > 0; left--) {
          const key = { "x-api-key": `guess-${pick(1_000_000)}` };
          requests.push(request("GET", search(), "203.0.113.200", key));
        }
      }
      return requests;
    },
  };
}

/** The number of visits in a second: 1 at night, 9 in the afternoon. */
function visitsOf(second: number): number {
  const hour = ((second / DAY_SECONDS) * 24 + 9) % 24;
  return Math.round(5 - 4 * Math.cos(((hour - 4) / 24) * 2 * Math.PI));
}

function addressOf(visitor: number): string {
  return visitor % 4 === 0 ? `2001:db8:${visitor}::1` : `198.51.100.${visitor + 1}`;
}

function request(
  method: PlannedRequest["method"],
  path: string,
  ip: string,
  headers: Readonly<Record<string, string>> = {},
): PlannedRequest {
  return { method, path, headers: { "cf-connecting-ip": ip, ...headers } };
}
