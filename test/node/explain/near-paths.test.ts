import { expect, it } from "vitest";
import { MAX_COMPARISONS, NearPaths } from "../../../src/explain/matching.ts";

it("compares a bounded number of routes, for all rules together", () => {
  const near = new NearPaths("/api/z", false);
  for (let rule = 0; rule < MAX_COMPARISONS; rule++) {
    expect(near.noteOf([`/api/${rule}`])).toBe(`The nearest path is /api/${rule}.`);
  }
  expect(near.noteOf(["/api/c"])).toBeUndefined();
});

it("names the first route with the most equal segments", () => {
  const near = new NearPaths("/v1/users/7", false);
  const routes = ["/v2/users/7", "/v1/users/:id{[a-z]+}", "/v1/users/7/edit", "/v1/users/7/a/b"];
  expect(near.noteOf(routes)).toBe("The nearest path is /v1/users/7/edit.");
});
