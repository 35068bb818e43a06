import { expect, it } from "vitest";
import { MAX_COMPARISONS, MAX_LENGTH, NearPaths } from "../../../src/explain/matching.ts";

it.each([
  ["short", "/api"],
  ["long", "/a".repeat(30)],
])("compares a bounded number of segments of %s routes, for all rules together", (_, start) => {
  const near = new NearPaths(`${start}/z`, false);
  const segments = start.split("/").length;
  for (let rule = 0; rule < Math.floor(MAX_COMPARISONS / segments); rule++) {
    expect(near.noteOf([`${start}/${rule}`])).toContain(`segment ${segments} is ${rule}`);
  }
  near.noteOf([`${start}/b`]);
  expect(near.noteOf([`${start}/c`])).toBeUndefined();
});

it.each([
  ["a path", `/api/${"z".repeat(MAX_LENGTH)}`, "/api/a"],
  ["a route", "/api/z", `/api/${"a".repeat(MAX_LENGTH)}`],
])("compares nothing with %s that is too long", (_, path, route) => {
  expect(new NearPaths(path, false).noteOf([route])).toBeUndefined();
});

it("names the route with the most equal segments, and of these the one whose length is nearest", () => {
  const near = new NearPaths("/v1/users/7", false);
  const routes = ["/v2/users/7", "/v1/users/7/a/b", "/v1/users/:id{[a-z]+}", "/v1/users/7/edit"];
  expect(near.noteOf(routes)).toBe(
    "The nearest path is /v1/users/7/edit: the request has no segment 4.",
  );
});
