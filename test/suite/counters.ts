import type { Counter } from "../../src/engine/counter.ts";

/** A minute's quota of one client, unless told otherwise. Each is a counter of its own. */
export function counter(fields: Partial<Counter> = {}): Counter {
  const identity = fields.identity ?? crypto.randomUUID();
  const limit = fields.limit ?? 5;
  return {
    key: `test:rule:1m:${identity}:${crypto.randomUUID()}`,
    identity,
    limit,
    ceiling: limit,
    windowMs: 60_000,
    offsetMs: 0,
    cost: 1,
    ...fields,
  };
}
