import type { FanInScenario } from "./fan-in.ts";

/** The continents of Cloudflare's field `cf.continent`, and the name for an unknown one. */
const EVERYWHERE = ["AF", "AN", "AS", "EU", "NA", "OC", "SA", "XX"];

const DEPLOY = {
  isolates: 10_000,
  locations: ["EU"],
  startWithinMs: 5000,
  meanLifeMs: Number.POSITIVE_INFINITY,
  objectLifeMs: Number.POSITIVE_INFINITY,
  durationMs: 180_000,
  seed: 1,
} satisfies Omit<FanInScenario, "name">;

export const SCENARIOS: readonly FanInScenario[] = [
  { ...DEPLOY, name: "100 isolates in one location", isolates: 100 },
  { ...DEPLOY, name: "1,000 isolates everywhere", isolates: 1000, locations: EVERYWHERE },
  { ...DEPLOY, name: "10,000 isolates in one location" },
  { ...DEPLOY, name: "10,000 isolates everywhere", locations: EVERYWHERE },
  { ...DEPLOY, name: "10,000 isolates that live for a minute", meanLifeMs: 60_000 },
  {
    ...DEPLOY,
    name: "10,000 isolates everywhere, objects live for a minute",
    locations: EVERYWHERE,
    objectLifeMs: 60_000,
  },
  { ...DEPLOY, name: "10,000 isolates that start over two minutes", startWithinMs: 120_000 },
];
