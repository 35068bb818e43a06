/**
 * The Redis that the whole test run shares, as `inject("redis")` gives it to a test. It is plain
 * data without Node's types, so that tests that run in workerd can name it too.
 */
export type ProvidedRedis = {
  kind: "redis-server" | "js-redis-server";
  host: string;
  port: number;
  /** Where Upstash's REST API answers over this Redis. */
  restUrl: string;
  /** The bearer token that it demands. */
  restToken: string;
};

declare module "vitest" {
  interface ProvidedContext {
    redis: ProvidedRedis;
  }
}
