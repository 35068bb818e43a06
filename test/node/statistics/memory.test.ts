import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { MAX_OVERRIDES, type Override } from "../../../src/overrides/override.ts";
import { ClientSketch } from "../../../src/statistics/client-sketch.ts";
import {
  MAX_LIMITED_CLIENTS,
  MAX_MINUTES,
  MinuteRecords,
} from "../../../src/statistics/recorder.ts";
import { MINUTE_MS } from "../../../src/statistics/sums.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heapUsed(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

const NOW = 1_800_000_000_000;
const RULES = 200;
const RULE_NAMES = Array.from({ length: RULES }, (_, rule) => `rule-${rule}`);

/** Adds sums of 200 rules for more minutes than are kept, and denials of many clients. */
function fillRecords(): unknown[] {
  const [minutes, clients] = [new MinuteRecords(), new ClientSketch([], MAX_LIMITED_CLIENTS)];
  for (let minute = 0; minute < 2 * MAX_MINUTES; minute++) {
    for (const name of RULE_NAMES) {
      minutes.at(NOW + minute * MINUTE_MS).ruleSums(name).requests += 1;
    }
  }
  for (let client = 0; client < 20 * MAX_LIMITED_CLIENTS; client++) {
    const rule = RULE_NAMES[client % RULES] as string;
    clients.add({ rule, client: identity(client), count: 1, error: 0, lastAt: NOW, shadow: false });
  }
  return [minutes, clients];
}

function identity(number: number): string {
  return Buffer.from(number.toString(36).padStart(22, "x")).toString("latin1");
}

/** Creates overrides as they arrive in an answer, with reasons that are not kept. */
function overridesOf(count: number): Override[] {
  return Array.from({ length: count }, (_, number) => ({
    rule: `rule-${number % RULES}`,
    client: identity(number),
    effect: { kind: "limits", limits: { api: 100 * (number % 50) } },
    expiresAt: NOW + 1e9,
    reason: Buffer.from(`reason ${number} `.repeat(10)).toString("latin1"),
    by: "token",
    setAt: NOW,
  }));
}

it("sums, a batch that waits, the clients most limited and 1,000 overrides take at most 2 MB", async () => {
  // Types of Workers are unknown to tests in Node, so this class is not imported by its name.
  const file = new URL("../../../src/overrides/live-overrides.ts", import.meta.url).href;
  const { LiveOverrides } = await import(/* @vite-ignore */ file);
  const createAll = () => {
    const overrides = new LiveOverrides();
    const set = overridesOf(MAX_OVERRIDES);
    overrides.update({ version: 1, all: set });
    const waiting = fillRecords();
    const [minutes, clients] = waiting as [MinuteRecords, ClientSketch];
    return [overrides, minutes.take(), clients.take(), ...fillRecords()];
  };
  // Compiled code is on the heap too, and is compiled at any time. It only adds to a measurement, so the
  // least of several measurements counts.
  const created: unknown[] = [];
  const measured = Array.from({ length: 5 }, () => {
    const before = heapUsed();
    created.push(createAll());
    return heapUsed() - before;
  });
  expect(created).toHaveLength(5);
  // Code that is dropped meanwhile makes a measurement too small.
  expect(Math.max(...measured)).toBeGreaterThan(500_000);
  expect(Math.min(...measured)).toBeLessThan(2_000_000);
});
