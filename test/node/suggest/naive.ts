import type { LogRequest } from "../../../cli/logs/log-request.ts";

const LENGTHS: Readonly<Record<string, number>> = { "10s": 10_000, "1m": 60_000, "1h": 3_600_000 };

/** Returns the numbers about one window, computed in the simplest way. */
export function naiveWindow(requests: readonly LogRequest[], window: string) {
  const length = LENGTHS[window] as number;
  const counts = new Map<string, number>();
  for (const { ip, at } of requests) {
    const pair = `${ip} ${Math.floor(at / length)}`;
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  const busiest = new Map<string, number>();
  for (const [pair, count] of counts) {
    const [ip = ""] = pair.split(" ");
    busiest.set(ip, Math.max(busiest.get(ip) ?? 0, count));
  }
  const all = [...counts.values()];
  return {
    clients: busiest.size,
    limits: busiest.size === 0 ? [] : [100, 1000, 10_000].map((part) => lowest(busiest, all, part)),
  };
}

/** Tries all limits from 0. */
function lowest(busiest: ReadonlyMap<string, number>, all: readonly number[], part: number) {
  for (let limit = 0; ; limit++) {
    const clientsDenied = [...busiest.values()].filter((count) => count > limit).length;
    if (clientsDenied * part > busiest.size) continue;
    const requestsDenied = all.reduce((sum, count) => sum + Math.max(0, count - limit), 0);
    return { share: 1 / part, limit, clientsDenied, requestsDenied };
  }
}
