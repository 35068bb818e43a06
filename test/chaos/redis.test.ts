import { describe, inject } from "vitest";
import type {} from "../../dev/provided.ts";
import { redisChaos } from "./environments.ts";
import { REDIS_FAULTS } from "./redis-faults.ts";
import { chaosSuite } from "./support/chaos-suite.ts";

// js-redis-server, which replaces a missing redis-server, cannot be paused or made read-only.
describe.skipIf(inject("redis").kind !== "redis-server")("Redis", () => {
  chaosSuite(REDIS_FAULTS, redisChaos);
});
