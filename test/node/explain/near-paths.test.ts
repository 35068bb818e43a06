import { expect, it } from "vitest";
import {
  MAX_COMPARISONS,
  MAX_LENGTH,
  MAX_ROUTES,
  NearPaths,
} from "../../../src/explain/matching.ts";
import { canonicalRequest } from "../../../src/request/canonical-request.ts";

function nearPaths(path: string): NearPaths {
  const request = canonicalRequest(new Request(`https://api.example.com${path}`), false);
  if (!request) throw new Error("The path is too long.");
  return new NearPaths(request, false);
}

it("compares a bounded number of routes, for all rules together", () => {
  const near = nearPaths("/api/z");
  for (let rule = 0; rule < MAX_ROUTES / 2; rule++) {
    expect(near.noteOf([`/api/a${rule}`, `/api/b${rule}`])).toContain("segment 2 is a");
  }
  const comparisons = near.comparisons;
  expect(near.noteOf(["/api/c"])).toBeUndefined();
  expect(near.comparisons).toBe(comparisons);
});

it("compares a bounded number of segments, for all rules together", () => {
  const start = "/a".repeat(30);
  const near = nearPaths(`${start}/z`);
  for (let rule = 0; rule < MAX_ROUTES; rule++) near.noteOf([`${start}/${rule}`]);
  expect(near.comparisons).toBeGreaterThanOrEqual(MAX_COMPARISONS);
  expect(near.comparisons).toBeLessThan(MAX_COMPARISONS + 31);
});

it.each([
  ["a path", `/api/${"z".repeat(MAX_LENGTH)}`, "/api/a"],
  ["a route", "/api/z", `/api/${"a".repeat(MAX_LENGTH)}`],
])("compares nothing with %s that is too long", (_, path, route) => {
  const near = nearPaths(path);
  expect(near.noteOf([route])).toBeUndefined();
  expect(near.comparisons).toBe(0);
});

it("names the route with the most equal segments, and of these the one whose length is nearest", () => {
  const near = nearPaths("/v1/users/7");
  const routes = ["/v2/users/7", "/v1/users/7/a/b", "/v1/users/:id{[a-z]+}", "/v1/users/7/edit"];
  expect(near.noteOf(routes)).toBe(
    "The nearest path is /v1/users/7/edit: the request has no segment 4.",
  );
});
