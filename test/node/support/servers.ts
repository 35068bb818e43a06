import { afterAll, beforeAll, inject } from "vitest";
import { type FaultyRest, startFaultyRest } from "../../../dev/faulty-rest.ts";
import type {} from "../../../dev/provided.ts";
import { type Origin, startOrigin } from "./origin.ts";

/** The stores that a Worker calls over the network. */
export const REMOTE_STORES = ["upstash", "durable-object"] as const;

export type RemoteStore = (typeof REMOTE_STORES)[number];

/** The servers that a Worker under test calls. They exist while the tests of a file run. */
export interface Servers {
  readonly origin: Origin;
  /**
   * A server with Upstash's REST API for the Redis that all tests share. Tests can inject faults
   * into it.
   */
  readonly rest: FaultyRest;
  /** Returns the vars of a Worker that uses these servers and the given store. */
  varsFor(store: RemoteStore): Record<string, string>;
}

/** Starts the servers before the tests of a file, and stops them after the tests. */
export function useServers(): Servers {
  let origin: Origin;
  let rest: FaultyRest;

  beforeAll(async () => {
    origin = await startOrigin();
    rest = await startFaultyRest(inject("redis"));
  });

  afterAll(async () => {
    await rest.stop();
    await origin.stop();
  });

  return {
    get origin() {
      return origin;
    },
    get rest() {
      return rest;
    },
    varsFor(store) {
      const upstash = { UPSTASH_REDIS_REST_URL: rest.url, UPSTASH_REDIS_REST_TOKEN: rest.token };
      return { ORIGIN_URL: origin.url, ...(store === "upstash" && upstash) };
    },
  };
}
