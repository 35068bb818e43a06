/**
 * Measures what the denial log adds to a denied request: `node bench/denial-log.ts`. Each figure is
 * the median of several rounds, in nanoseconds for each call.
 */
import { type Denial, DenialLog } from "../src/denial-log.ts";

const CALLS = 200_000;
const ROUNDS = 15;

const denial: Denial = {
  mode: "enforce",
  rule: "login",
  policy: "login/1m",
  client: "A1b2C3d4E5f6G7h8I9j0-_",
  cost: 1,
  retryAfterMs: 1000,
};
const request = {
  headers: new Headers({ "cf-ray": "8f1b2c3d4e5f6a7b-FRA" }),
  cf: { colo: "FRA" },
};

let written = 0;
const write = (event: string, fields: Record<string, unknown>) => {
  written += JSON.stringify({ weir: event, ...fields }).length;
};

function nanosecondsPerCall(linesPerSecond: number): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const log = new DenialLog(write, () => {});
    const startedAt = performance.now();
    for (let call = 0; call < CALLS; call++) log.add(denial, linesPerSecond, request);
    return ((performance.now() - startedAt) * 1e6) / CALLS;
  });
  return Math.round(rounds.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0);
}

console.log(`no log (denialLog: 0):               ${nanosecondsPerCall(0)} ns`);
console.log(`a denial above the number of lines:  ${nanosecondsPerCall(10)} ns`);
console.log(`a line, without console.log:         ${nanosecondsPerCall(Infinity)} ns`);
// The timers of the measured logs are of no use any more.
process.exit(written > 0 ? 0 : 1);
