import { describe, expect, it } from "vitest";
import { figure, table } from "../../../../bench/report/format.ts";

describe("a figure", () => {
  it.each([
    [1234.5, 0, "1,235"],
    [1.005, 3, "1.005"],
    [0, 2, "0.00"],
    [-0.001, 2, "0.00"],
    [-4.5, 1, "-4.5"],
  ])("%d with %i decimals is %s", (value, decimals, text) => {
    expect(figure(value, decimals)).toBe(text);
  });

  it("is a dash when it is undefined", () => {
    expect(figure(undefined, 2)).toBe("–");
  });
});

describe("a table", () => {
  it("aligns names left and figures right, in columns of equal width", () => {
    const rows = [
      ["short", "1.00"],
      ["rather long", "1,234.00"],
    ];
    expect(table(["", "p50"], rows)).toBe(
      [
        "|             |      p50 |",
        "| :---------- | -------: |",
        "| short       |     1.00 |",
        "| rather long | 1,234.00 |",
      ].join("\n"),
    );
  });
});
