/**
 * `npm run simulate:cost`: what a month of the given traffic costs, by store, with and without leases. Prints Markdown.
 */
import { Command, InvalidArgumentError } from "commander";
import { parseDuration } from "../../../src/config/duration.ts";
import { figure, table } from "../../report/format.ts";
import latest from "../../results/latest.json" with { type: "json" };
import { Random } from "../random.ts";
import type { Scenario } from "../scenario.ts";
import { openTraffic } from "../scenarios/defaults.ts";
import { counterOf, simulate } from "../simulation.ts";
import { constantRate, uniformClients } from "../traffic.ts";
import { measureCallBytes } from "./call-bytes.ts";
import { CallMeter } from "./call-meter.ts";
import { type Upkeep, upkeepOfMonth } from "./object-month.ts";
import * as prices from "./prices.ts";

const SEED = 1;
const MONTH_S = 30 * 86_400;
/** The simulated windows, and the seconds that are simulated at least. */
const WINDOWS = 5;
const LEAST_SECONDS = 300;
/** The requests of a month for which upkeep is simulated, if so many clients send them. */
const UPKEEP_REQUESTS = 20_000;

interface Options {
  readonly rps: readonly number[];
  readonly clients: readonly number[];
  readonly window: number;
  readonly limit?: number;
  readonly isolates: number;
}

interface Case extends Pick<Options, "isolates"> {
  readonly rps: number;
  readonly clients: number;
  readonly limit: number;
  readonly windowMs: number;
}

/** A month of a case, and the shares of its requests that were denied and that were decided without a call. */
interface Usage extends prices.MonthOfStore {
  readonly denied: number;
  readonly fromMemory: number;
}

/** A month of the store with and without leases. */
interface Month extends Case {
  readonly off: Usage;
  readonly auto: Usage;
}

const options = parseOptions();
const bytes = await measureCallBytes((client) =>
  counterOf(scenarioOf(casesOf(options)[0] as Case), client),
);
const months: Month[] = [];
for (const each of casesOf(options)) {
  console.error(`${each.rps} requests a second, ${each.clients} clients`);
  const upkeep = await upkeepOf(each);
  const [off, auto] = [await monthOf(each, false, upkeep), await monthOf(each, true, upkeep)];
  months.push({ ...each, off, auto });
}
console.log(report(months));

function parseOptions(): Options {
  return new Command("npm run simulate:cost --")
    .description("Prints what a month of traffic costs, by store, with and without leases.")
    .option("--rps <number,…>", "mean requests a second", numbersIn, [10, 50, 500])
    .option(
      "--clients <number,…>",
      "clients that send equally often",
      numbersIn,
      [1, 2000, 100_000],
    )
    .option("--window <time>", "the window of the rule, such as 10s, 1m or 1h", windowIn, 60)
    .option(
      "--limit <number>",
      "the limit (default: twice what a client sends, at least 60)",
      numberIn,
    )
    .option("--isolates <number>", "isolates that run the Worker", numberIn, 10)
    .parse()
    .opts<Options>();
}

function numbersIn(text: string): number[] {
  return text.split(",").map(numberIn);
}

function numberIn(text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Allowed: whole numbers from 1 to 9999999.");
}

function windowIn(text: string): number {
  const seconds = parseDuration(text);
  if (seconds !== undefined && seconds <= 3600) return seconds;
  throw new InvalidArgumentError("Allowed: at most 1h.");
}

function casesOf({ rps, clients, window, limit, isolates }: Options): Case[] {
  return rps.flatMap((perSecond) =>
    clients.map((count) => ({
      rps: perSecond,
      clients: count,
      limit: limit ?? Math.max(60, Math.ceil((2 * perSecond * window) / count)),
      windowMs: 1000 * window,
      isolates,
    })),
  );
}

function scenarioOf({ rps, clients, ...rest }: Case, leases = true): Scenario {
  const durationMs = Math.max(WINDOWS * rest.windowMs, 1000 * LEAST_SECONDS);
  return {
    ...{ ...rest, leases, group: "cost", name: "cost", demand: "–", runs: 1 },
    ...{ roundTripMs: 20, skewMs: 0, lossShare: 0 },
    // As in the scenarios of uneven clients.
    ...{ deathsPerMinute: 0.01, routing: { movesPerMinute: 0.1, strays: 0.05 } },
    traffic: (random) =>
      openTraffic(constantRate(rps), rps, durationMs, random, uniformClients(clients, random)),
  };
}

/** Simulates the upkeep of all objects for a month. */
async function upkeepOf({ rps, clients, ...rest }: Case): Promise<Upkeep> {
  const perSecond = rps / clients;
  const sampled = Math.ceil(Math.min(clients, UPKEEP_REQUESTS / (perSecond * MONTH_S)));
  const upkeep = { alarms: 0, rowsWritten: 0 };
  for (let client = 0; client < sampled; client++) {
    const random = new Random(SEED, `upkeep of client ${client}`);
    const counter = counterOf(scenarioOf({ rps, clients, ...rest }), client);
    const { alarms, rowsWritten } = await upkeepOfMonth(counter, perSecond, random);
    upkeep.alarms += (alarms * clients) / sampled;
    upkeep.rowsWritten += (rowsWritten * clients) / sampled;
  }
  return upkeep;
}

/** Simulates some windows with all isolates, and projects them to a month. */
async function monthOf(each: Case, leases: boolean, upkeep: Upkeep): Promise<Usage> {
  const meter = new CallMeter();
  const { offered, admitted, fromMemory } = await simulate(scenarioOf(each, leases), SEED, meter);
  const times = (each.rps * MONTH_S) / offered;
  const bodies = meter.restCalls * (bytes.first - bytes.further) + meter.entries * bytes.further;
  return {
    denied: 1 - admitted / offered,
    fromMemory: fromMemory / offered,
    commands: meter.commands * times,
    bytes: bodies * times,
    objectCalls: meter.objectCalls * times + upkeep.alarms,
    rowsWritten: meter.rowsWritten * times + upkeep.rowsWritten,
  };
}

function report(months: readonly Month[]): string {
  const cpuMs = latest.cpu.added.weir.median / 1000;
  const both = (month: Month, text: (each: Usage) => string) =>
    `${text(month.off)} → ${text(month.auto)}`;
  const millions = (count: number) => figure(count / 1e6, count < 1e7 ? 2 : 0);
  const dollars = (amount: number) => `$${figure(amount, amount < 10 ? 2 : 0)}`;
  const plan = (each: Usage) => {
    const fits = prices.redisPlan(each, MONTH_S);
    return fits ? `$${fits.dollars} (${fits.name})` : "none";
  };
  const caseOf = ({ rps, clients, limit }: Month) => [
    figure(rps, 0),
    figure(clients, 0),
    figure(limit, 0),
  ];
  const head = ["requests a second", "clients", "limit"];
  const priceRows = months.map((month) => [
    ...caseOf(month),
    dollars(prices.worker(month.rps * MONTH_S, cpuMs)),
    both(month, (each) => dollars(prices.redisByCommand(each))),
    both(month, plan),
    both(month, (each) => dollars(prices.objects(each))),
    both(month, (each) => figure(prices.includedMsOfCall(each), 1)),
    both(month, (each) => dollars(prices.objectsByMs(each))),
  ]);
  const usageRows = months.map((month) => [
    ...caseOf(month),
    millions(month.rps * MONTH_S),
    both(month, ({ denied }) => figure(100 * denied, 1)),
    both(month, ({ fromMemory }) => figure(100 * fromMemory, 1)),
    both(month, ({ commands }) => millions(commands)),
    both(month, (each) => figure(each.bytes / 1e9, 1)),
    both(month, ({ objectCalls }) => millions(objectCalls)),
    both(month, ({ rowsWritten }) => millions(rowsWritten)),
  ]);
  const { windowMs, isolates } = months[0] as Month;
  return `A month of 30 days, one rule with one window of ${windowMs / 1000} s. Each pair is without leases → with \`lease: "auto"\`.

${table([...head, "Workers", "Upstash by command", "Upstash, fixed", "Durable Objects", "ms of a call that are included", "each further ms"], priceRows)}

${table(
  [
    ...head,
    "requests, millions",
    "denied, %",
    "decided from memory, %",
    "commands, millions",
    "bandwidth, GB",
    "calls to objects, millions",
    "rows written, millions",
  ],
  usageRows,
)}

- **Simulated:** ${WINDOWS} windows, at least ${LEAST_SECONDS} s, with ${isolates} isolates and 20 ms to the store; and up to a month of an object's upkeep: tables, alarms, old rows.
- **Extrapolated:** the month from these windows. Clients send equally often, at random times, by day as by night. Of the requests, 5 % reach another isolate than the client's own.
- **Measured:** ${figure(bytes.first, 0)} bytes in the bodies of a call to Upstash, and ${figure(bytes.further, 0)} for each further decision in it; ${figure(cpuMs, 2)} ms of CPU time of a request with its forwarding, by \`npm run bench\` on its machine.
- **Prices** of November 2026, beyond what the paid plan of Workers includes. Its $5 are in the column Workers.
- **Fixed plans** are the smallest ones with this bandwidth and 10,000 commands a second on average. The fields of HTTP are not in the bandwidth, and may need a larger plan.
- **Duration** is billed for calls to objects, not for idle time that allows hibernation. The last two columns show how long a call may take within the plan, and the price of each further millisecond.
- **Not in the tables:** storage, replicas, statistics (\`WEIR_CONTROL\`) and the origin.`;
}
