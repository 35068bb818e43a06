/**
 * The Redis that all tests of a run share. `inject("redis")` returns it. This type contains no
 * types of Node, so that tests in workerd can use it too.
 */
export interface ProvidedRedis {
  readonly kind: "redis-server" | "js-redis-server";
  readonly host: string;
  readonly port: number;
  /** The URL of an Upstash-compatible REST API over this Redis. */
  readonly restUrl: string;
  /** The bearer token that the REST API requires. */
  readonly restToken: string;
}

/** How the property tests of a run draw their cases. */
export interface ProvidedPropertyTests {
  /** Whether all cases run, or a tenth of them. */
  readonly isLong: boolean;
  readonly seed: number;
}

declare module "vitest" {
  interface ProvidedContext {
    redis: ProvidedRedis;
    propertyTests: ProvidedPropertyTests;
  }
}
