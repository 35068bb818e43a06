import type { Random } from "../random.ts";
import type { Scenario } from "../scenario.ts";
import { arrivalsOf, bursts, oneClient, onOffRate, type Traffic, waveRate } from "../traffic.ts";
import { ALL, DEFAULTS, MINUTE, openTraffic, SECOND } from "./defaults.ts";

/**
 * A client that sends requests at a changing rate. On average, it sends as many requests as its
 * limit allows.
 */
export function shapes(): Scenario[] {
  const perSecond = DEFAULTS.limit / 60;
  const shape = (name: string, traffic: (random: Random) => Traffic): Scenario => {
    return {
      ...DEFAULTS,
      group: "shapes",
      name,
      isolates: 10,
      demand: ALL.demand,
      runs: 5,
      traffic,
    };
  };
  const burst = (size: number, durationMs: number) => (random: Random) =>
    ({
      kind: "open",
      durationMs,
      arrivals: arrivalsOf(oneClient(), bursts(size, perSecond, durationMs, random)),
    }) as const;

  return [
    shape("10 s on, 10 s off", (random) =>
      openTraffic(onOffRate(perSecond, 20 * SECOND), 2 * perSecond, 3 * MINUTE, random),
    ),
    shape("day and night in 10 min", (random) =>
      openTraffic(waveRate(perSecond, 10 * MINUTE), 2 * perSecond, 20 * MINUTE, random),
    ),
    shape("bursts of 200", burst(200, 3 * MINUTE)),
    shape("bursts of 2,000", burst(2000, 6 * MINUTE)),
  ];
}
