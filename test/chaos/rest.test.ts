import { describe, expect, inject, it } from "vitest";
import type {} from "../../dev/provided.ts";
import { restChaos } from "./environments.ts";
import { REST_FAULTS } from "./rest-faults.ts";
import { chaosSuite } from "./support/chaos-suite.ts";

describe("Upstash", () => {
  const chaos = chaosSuite(REST_FAULTS, () => restChaos(inject("redis")));

  it("does not send the token to the server to which the store redirects", () => {
    const received = chaos().elsewhere();
    expect(received.length).toBeGreaterThan(0);
    for (const headers of received) expect(headers).not.toHaveProperty("authorization");
  });
});
