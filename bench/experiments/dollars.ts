/**
 * Prices in US dollars, November 2026, without what plans include.
 *
 * https://upstash.com/pricing/redis (pay as you go)
 * https://developers.cloudflare.com/durable-objects/platform/pricing/
 */
const PER_REDIS_COMMAND = 0.2 / 100_000;
const PER_OBJECT_CALL = 0.15 / 1_000_000;
const PER_ROW_WRITTEN = 1 / 1_000_000;

/** What a number of requests made their limiter use. */
export type Usage = {
  restCalls: number;
  /** Commands of Redis, scripts and what is called inside them. */
  commands: number;
  objectCalls: number;
  rowsWritten: number;
};

export const NO_USAGE: Usage = { restCalls: 0, commands: 0, objectCalls: 0, rowsWritten: 0 };

/**
 * What that comes to for a million requests. Left out is what depends on the deployment: the
 * Worker's own requests, the time that Durable Objects are in memory, and storage.
 */
export function dollarsPerMillion(usage: Usage, requests: number): number {
  const dollars =
    usage.commands * PER_REDIS_COMMAND +
    usage.objectCalls * PER_OBJECT_CALL +
    usage.rowsWritten * PER_ROW_WRITTEN;
  return (dollars / requests) * 1_000_000;
}
