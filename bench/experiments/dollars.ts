/**
 * Prices in US dollars in November 2026. They ignore the free amounts that plans include.
 *
 * https://upstash.com/pricing/redis (pay as you go)
 * https://developers.cloudflare.com/durable-objects/platform/pricing/
 */
export const PER_REDIS_COMMAND = 0.2 / 100_000;
export const PER_OBJECT_CALL = 0.15 / 1_000_000;
export const PER_ROW_WRITTEN = 1 / 1_000_000;

/** The calls, commands and rows that a limiter needed for a number of requests. */
export interface Usage {
  readonly restCalls: number;
  /** Redis commands: scripts, and the commands inside scripts. */
  readonly commands: number;
  readonly objectCalls: number;
  readonly rowsWritten: number;
}

export const NO_USAGE: Usage = { restCalls: 0, commands: 0, objectCalls: 0, rowsWritten: 0 };

/**
 * Returns the price of this usage for one million requests. It leaves out costs that depend on the
 * deployment: the Worker's own requests, the time that Durable Objects are in memory, and storage.
 *
 * @param requests the number of requests that caused the usage
 */
export function dollarsPerMillion(usage: Usage, requests: number): number {
  const dollars =
    usage.commands * PER_REDIS_COMMAND +
    usage.objectCalls * PER_OBJECT_CALL +
    usage.rowsWritten * PER_ROW_WRITTEN;
  return (dollars / requests) * 1_000_000;
}
