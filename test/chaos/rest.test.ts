import { describe, expect, inject, it } from "vitest";
import type {} from "../../dev/provided-redis.ts";
import { REST_FAULTS } from "./rest-faults.ts";
import { restChaos } from "./stages.ts";
import { chaosSuite } from "./support/chaos-suite.ts";

describe("an Upstash", () => {
  const chaos = chaosSuite(REST_FAULTS, () => restChaos(inject("redis")));

  it("that redirects gives nobody else its token", () => {
    const received = chaos().elsewhere();
    expect(received.length).toBeGreaterThan(0);
    for (const headers of received) expect(headers).not.toHaveProperty("authorization");
  });
});
