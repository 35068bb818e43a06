import { describe, inject } from "vitest";
import type {} from "../../dev/provided-redis.ts";
import { REDIS_FAULTS } from "./redis-faults.ts";
import { redisChaos } from "./stages.ts";
import { chaosSuite } from "./support/chaos-suite.ts";

// What stands in for Redis where there is none cannot be mistreated like this.
describe.skipIf(inject("redis").kind !== "redis-server")("a Redis", () => {
  chaosSuite(REDIS_FAULTS, redisChaos);
});
