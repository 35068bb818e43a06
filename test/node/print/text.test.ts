import { describe, expect, it } from "vitest";
import {
  addedUp,
  barChart,
  fitted,
  jsonText,
  padded,
  table,
  widthOf,
  wrapped,
} from "../../../cli/print/text.ts";
import {
  formatDollars,
  formatDuration,
  formatPercent,
  formatShortCount,
  formatTime,
} from "../../../src/admin/format.ts";

describe("barChart", () => {
  it.each([
    [[], ""],
    [[0, 0], "  "],
    [[1], "█"],
    [[0, 1, 2, 3, 4, 5, 6, 7, 8], " ▁▂▃▄▅▆▇█"],
    [[1, 1_000_000], "▁█"],
  ])("draws %j", (values, chart) => {
    expect(barChart(values, 80)).toBe(chart);
  });

  it("adds up neighbouring values, so that the chart has at most the given width", () => {
    expect(barChart([1, 1, 0, 0, 4], 3)).toBe("▄ █");
    expect(addedUp([1, 2, 3, 4, 5], 2)).toEqual([6, 9]);
    expect(barChart(Array(240).fill(1), 80)).toBe("█".repeat(80));
  });
});

describe("fitted", () => {
  it.each([
    ["short", 10, "short"],
    ["exactly 10", 10, "exactly 10"],
    ["more than 10", 10, "more th..."],
    ["表表表表表表", 10, "表表表..."],
    ["a\u001b[31mred", 20, "a [31mred"],
    ["\u202Eevil", 20, "evil"],
    ["", 10, ""],
  ])("fits %j into %d columns", (text, width, expected) => {
    expect(fitted(text, width)).toBe(expected);
    expect(widthOf(fitted(text, width))).toBeLessThanOrEqual(width);
  });
});

it("padded adds spaces by columns, not by characters", () => {
  expect([padded("表", 4), padded("7", 3, "left"), padded("long", 2)]).toEqual([
    "表  ",
    "  7",
    "long",
  ]);
});

it("wrapped breaks lines at spaces, and cuts words that are too long", () => {
  const lines = wrapped(`one two three ${"x".repeat(50)} four`, 10);
  expect(lines).toEqual(["one two", "three", "xxxxxxx...", "four"]);
});

it("a table breaks its widest cells to fit a width, and keeps its colours and numbers in place", () => {
  const rows = [
    ["one", "/a/long/path /b", 5],
    ["two", "/c", { text: 10, style: "red" as const }],
  ];
  expect(table(["NAME", "PATHS", "LEFT"], rows, 22)).toBe(
    [
      "NAME  PATHS       LEFT",
      "one   /a/long        5",
      "      /path /b",
      "two   /c            10",
    ].join("\n"),
  );
  expect(table(["NAME", "PATHS", "LEFT"], rows).split("\n")).toHaveLength(3);
});

it("formatShortCount shortens only numbers of more than six characters", () => {
  const numbers = [9999, 10_000, 99_999, 100_000, 1_234_567];
  expect(numbers.map(formatShortCount)).toEqual(["9,999", "10,000", "99,999", "100K", "1.23M"]);
});

describe("formatPercent", () => {
  it.each([
    [0, "0%"],
    [0.000001, "< 0.01%"],
    [0.0041, "0.41%"],
    [0.041, "4.1%"],
    [0.5, "50.0%"],
    [0.9999999, "> 99.9%"],
    [1, "100%"],
  ])("of %d is %s", (share, text) => {
    expect(formatPercent(share)).toBe(text);
  });
});

describe("formatDollars", () => {
  it.each([
    [0, "$0.00"],
    [0.000002, "< $0.0001"],
    [0.0661, "$0.0661"],
    [12.5, "$12.50"],
    [1234.5, "$1,234.50"],
  ])("of %d are %s", (value, text) => {
    expect(formatDollars(value)).toBe(text);
  });
});

describe("formatDuration", () => {
  it.each([
    [0, "0s"],
    [1, "1s"],
    [45_000, "45s"],
    [185_000, "3m 5s"],
    [6_720_000, "1h 52m"],
    [3_601_000, "1h"],
    [183_600_000, "2d 3h"],
    [86_399_500, "1d"],
  ])("of %d ms is %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

it("formatTime writes UTC, and does not fail for a time that no calendar has", () => {
  expect(formatTime(Date.UTC(2026, 10, 22, 17, 4, 20))).toBe("2026-11-22 17:04:20 UTC");
  expect(formatTime(8.65e15)).toBe("unknown");
});

it("jsonText escapes what a terminal obeys, and keeps the value", () => {
  const value = { text: "\u001b[31m\u009b31m\u202E\u2028\ufeff ä" };
  const text = jsonText(value);
  expect(JSON.parse(text)).toEqual(value);
  expect(text).toContain("\\u009b31m\\u202e\\u2028\\ufeff ä");
});
