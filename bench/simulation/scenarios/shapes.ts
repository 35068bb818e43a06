import type { Random } from "../random.ts";
import type { Scenario } from "../scenario.ts";
import { bursts, of, onAndOff, oneClient, type Traffic, waves } from "../traffic.ts";
import { ALL, MINUTE, open, SECOND, USUAL } from "./defaults.ts";

/** A client that asks for its limit on average, but not evenly. */
export function shapes(): Scenario[] {
  const perSecond = USUAL.limit / 60;
  const shape = (name: string, traffic: (random: Random) => Traffic): Scenario => {
    return { ...USUAL, group: "shapes", name, isolates: 10, demand: ALL.demand, runs: 5, traffic };
  };
  const burst = (size: number, durationMs: number) => (random: Random) =>
    ({
      kind: "open",
      durationMs,
      arrivals: of(oneClient(), bursts(size, perSecond, durationMs, random)),
    }) as const;

  return [
    shape("10 s on, 10 s off", (random) =>
      open(onAndOff(perSecond, 20 * SECOND), 2 * perSecond, 3 * MINUTE, random),
    ),
    shape("day and night in 10 min", (random) =>
      open(waves(perSecond, 10 * MINUTE), 2 * perSecond, 20 * MINUTE, random),
    ),
    shape("bursts of 200", burst(200, 3 * MINUTE)),
    shape("bursts of 2,000", burst(2000, 6 * MINUTE)),
  ];
}
