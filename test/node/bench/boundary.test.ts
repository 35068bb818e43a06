import { expect, inject, it } from "vitest";
import { boundaryRows, mostInAnyMinute } from "../../../bench/boundary/boundary.ts";

it("finds the most requests in any minute, of which the first instant of the next minute is no part", () => {
  expect(mostInAnyMinute([0, 0, 59_999, 60_000, 90_000])).toBe(3);
  expect(mostInAnyMinute([])).toBe(0);
});

it("admits the limit in every minute with `sliding` alone, and twice the limit with other windows", async () => {
  const rows = await boundaryRows(inject("redis"), {
    randomRuns: 1,
    attacksAt: [59],
    evenMinutes: 3,
  });
  const byTitle = Object.fromEntries(rows.map(({ title, ...row }) => [title, row]));
  for (const [title, evenQuota] of [
    ["Weir, `sliding: true`", 54],
    ["Weir, `sliding: 60`", 59],
  ] as const) {
    expect(byTitle[title]).toMatchObject({ boundary: 5, attacker: 60 });
    expect(byTitle[title]?.random).toBeLessThanOrEqual(60);
    expect(byTitle[title]?.even).toBeGreaterThanOrEqual(evenQuota);
  }
  for (const title of ["Weir", "@upstash/ratelimit, fixedWindow"]) {
    expect(byTitle[title]).toMatchObject({ boundary: 10, attacker: 120, even: 60 });
  }
  expect(byTitle["@upstash/ratelimit, slidingWindow"]).toMatchObject({
    boundary: 6,
    attacker: 120,
  });
});
