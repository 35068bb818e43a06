import { expect, it } from "vitest";
import { dataPointsOf, MAX_DATA_POINTS, noRuleSums, noSums } from "../../../src/statistics/sums.ts";

it("writes a data point for all requests of a minute, and one for each rule", () => {
  const minute = noSums(7);
  minute.requests.requests = 3;
  minute.rules.api = { ...noRuleSums(), requests: 2, limited: 1 };
  const [all, rule, ...others] = dataPointsOf([minute]);
  expect(all).toMatchObject({ indexes: ["all"], blobs: ["all", "", "7"] });
  expect(all?.doubles).toEqual([3, ...new Array(12).fill(0)]);
  expect(rule).toEqual({
    indexes: ["api"],
    blobs: ["rule", "api", "7"],
    doubles: [2, 0, 1, 0, 0, 0],
  });
  expect(others).toEqual([]);
});

it("leaves out the rules with the fewest requests if there are too many", () => {
  const minute = noSums(7);
  for (let rule = 0; rule < 300; rule++) {
    minute.rules[`rule-${rule}`] = { ...noRuleSums(), requests: rule };
  }
  const points = dataPointsOf([minute]);
  expect(points).toHaveLength(MAX_DATA_POINTS);
  expect(points.map(({ indexes }) => indexes[0]).slice(0, 2)).toEqual(["all", "rule-299"]);
});
