import { expect, it } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import type { KeyContext } from "../../../src/request/identity.ts";
import { tierFor } from "../../../src/request/rule-applier.ts";

const MANY = 700;
/** The shortest time of several rounds is compared, because other programs delay some rounds. */
const ROUNDS = 200;

/** Defines a rule with tiers of the names t0, t1 and so on, whose last tier has a limit of 9. */
function ruleWith(tiers: number): Rule {
  const limits = Object.fromEntries(
    Array.from({ length: tiers }, (_, index) => [
      `t${index}`,
      { limit: index === tiers - 1 ? 9 : 8, window: "1m" as const },
    ]),
  );
  const rule = { name: "r", limit: 5, window: "1m", tiers: { by: "jwt:roles", limits } } as const;
  const config = defineConfig({ jwt: { secret: "JWT_SECRET" }, rules: [rule] });
  return config.rules[0] as Rule;
}

/** Returns a function that finds the quota of a client whose last role is the name of the last tier. */
function reader(tiers: number, roles: number): () => Promise<number | undefined> {
  const rule = ruleWith(tiers);
  const list = [...Array.from({ length: roles - 1 }, (_, index) => `${index}`), `t${tiers - 1}`];
  const context = { readClaims: async () => ({ roles: list }) } as unknown as KeyContext;
  return async () => (await tierFor(rule, context)).windows[0]?.limit;
}

it("a client's tier is found in time linear in the numbers of tiers and of roles", async () => {
  const readers = [reader(MANY, MANY), reader(MANY, 1), reader(1, MANY)];
  const shortest = readers.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, read] of readers.entries()) {
      const startedAt = performance.now();
      const limit = await read();
      shortest[index] = Math.min(shortest[index] as number, performance.now() - startedAt);
      expect(limit).toBe(9);
    }
  }
  const [both, manyTiers, manyRoles] = shortest as [number, number, number];
  // If each role were compared with each tier, this would take about 100 times as long.
  expect(both).toBeLessThan(10 * (manyTiers + manyRoles));
});
