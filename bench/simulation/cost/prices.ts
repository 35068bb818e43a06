import { PER_OBJECT_CALL, PER_REDIS_COMMAND, PER_ROW_WRITTEN } from "../../experiments/dollars.ts";

/**
 * Monthly prices in US dollars in November 2026, with the amounts that plans include.
 *
 * https://upstash.com/docs/redis/overall/billing
 * https://developers.cloudflare.com/workers/platform/pricing/
 * https://developers.cloudflare.com/durable-objects/platform/pricing/
 */

const MILLION = 1_000_000;
const GB = 1_000_000_000;

/** Upstash's plans with a fixed price: dollars, bandwidth in bytes, and commands a month. */
const REDIS_PLANS = [
  { name: "Free", dollars: 0, bytes: 10 * GB, commands: 500_000 },
  { name: "250 MB", dollars: 10, bytes: 50 * GB },
  { name: "1 GB", dollars: 20, bytes: 100 * GB },
  { name: "5 GB", dollars: 100, bytes: 500 * GB },
  { name: "10 GB", dollars: 200, bytes: 1000 * GB },
  { name: "50 GB", dollars: 400, bytes: 5000 * GB },
  { name: "100 GB", dollars: 800, bytes: 10_000 * GB },
  { name: "500 GB", dollars: 1500, bytes: 20_000 * GB },
] as const;

/** The commands in a second that every plan allows. */
const REDIS_COMMANDS_PER_SECOND = 10_000;

/** What a month needs of the store. */
export interface MonthOfStore {
  readonly commands: number;
  readonly bytes: number;
  readonly objectCalls: number;
  readonly rowsWritten: number;
}

/** Pay as you go, with 200 GB of bandwidth. */
export function redisByCommand({ commands, bytes }: MonthOfStore): number {
  return commands * PER_REDIS_COMMAND + (beyond(bytes, 200 * GB) / GB) * 0.03;
}

/** Returns the cheapest plan with a fixed price; undefined if no plan is large enough. */
export function redisPlan({ commands, bytes }: MonthOfStore, seconds: number) {
  if (commands / seconds > REDIS_COMMANDS_PER_SECOND) return undefined;
  return REDIS_PLANS.find(
    (plan) => bytes <= plan.bytes && (!("commands" in plan) || commands <= plan.commands),
  );
}

/** Calls and rows of objects beyond those of the paid plan of Workers. */
export function objects({ objectCalls, rowsWritten }: MonthOfStore): number {
  return (
    beyond(objectCalls, MILLION) * PER_OBJECT_CALL +
    beyond(rowsWritten, 50 * MILLION) * PER_ROW_WRITTEN
  );
}

const OBJECT_GB = 0.128;
const INCLUDED_GB_SECONDS = 400_000;

/** The milliseconds that a call to an object may take within the duration of the paid plan. */
export function includedMsOfCall({ objectCalls }: MonthOfStore): number {
  return (1000 * INCLUDED_GB_SECONDS) / OBJECT_GB / objectCalls;
}

/** The price of each further millisecond of all calls. */
export function objectsByMs({ objectCalls }: MonthOfStore): number {
  return (objectCalls / 1000) * OBJECT_GB * (12.5 / MILLION);
}

/** The paid plan of Workers: 10 million requests and 30 million milliseconds of CPU time. */
export function worker(requests: number, cpuMs: number): number {
  return (
    5 +
    beyond(requests, 10 * MILLION) * (0.3 / MILLION) +
    beyond(requests * cpuMs, 30 * MILLION) * (0.02 / MILLION)
  );
}

function beyond(used: number, included: number): number {
  return Math.max(0, used - included);
}
