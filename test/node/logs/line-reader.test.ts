import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineReader } from "../../../cli/logs/log-file.ts";
import { LogCounts } from "../../../cli/logs/progress.ts";
import { propertyRuns } from "../../suite/runs.ts";

const MAX = 64;

/** Splits bytes that arrive in chunks of these sizes. A long line is "too long". */
function split(bytes: Buffer, sizes: readonly number[]) {
  const lines: string[] = [];
  const counts = new LogCounts();
  counts.addBroken = () => lines.push("too long");
  const parser = {
    parse(line: string) {
      lines.push(line);
      return undefined;
    },
    sortCommand: "sort",
    facts: () => new Set<string>(),
  };
  const reader = new LineReader({ file: "a.log", parser, counts, maxBytes: MAX });
  let from = 0;
  for (let turn = 0; from < bytes.length; turn++) {
    const to = from + (sizes[turn % sizes.length] ?? 1);
    reader.push(bytes.subarray(from, to));
    from = to;
  }
  reader.end();
  return lines;
}

describe("the lines of a file", () => {
  it.each([
    ["", []],
    ["a", ["a"]],
    ["a\n", ["a"]],
    ["a\nb", ["a", "b"]],
    ["a\r\nb\r\n", ["a", "b"]],
    ["\n\na\n\n", ["", "", "a", ""]],
    ["\r\n", [""]],
    ["a\rb\n", ["a\rb"]],
    ["\ufeffa\nb", ["a", "b"]],
    ["\ufeff", [""]],
    ["a\n\ufeffb", ["a", "\ufeffb"]],
    ["ünïcode €\n😀", ["ünïcode €", "😀"]],
    ["a\0b\u2028c\n", ["a\0b\u2028c"]],
  ])("of %j are %j, for chunks of any size", (text, lines) => {
    for (const size of [1, 2, 3, 5, 100]) expect(split(Buffer.from(text), [size])).toEqual(lines);
  });

  it("contain U+FFFD for bytes that are no UTF-8", () => {
    expect(split(Buffer.from("61ff62c30a80", "hex"), [2])).toEqual(["a\ufffdb\ufffd", "\ufffd"]);
  });

  it.each([
    ["a".repeat(MAX), false],
    ["a".repeat(MAX + 1), true],
    ["a".repeat(1000), true],
    ["€".repeat(21), false],
    ["€".repeat(22), true],
  ])("are too long from one byte over the maximum: %s", (line, isLong) => {
    const expected = isLong ? "too long" : line;
    for (const size of [1, 7, 63, 64, 65, 2000]) {
      expect(split(Buffer.from(`x\n${line}\ny\n${line}`), [size])).toEqual([
        "x",
        expected,
        "y",
        expected,
      ]);
    }
  });

  it("are the same for any bytes in any chunks", () => {
    const bytes = fc
      .array(
        fc.constantFrom("a", "\n", "\r\n", "\r", "\u00fc", "b".repeat(30), "c".repeat(70), "\xff"),
        {
          maxLength: 40,
        },
      )
      .map((parts) => Buffer.from(parts.join(""), "latin1"));
    const sizes = fc.array(fc.integer({ min: 1, max: 80 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(bytes, sizes, (input, chunks) => {
        expect(split(input, chunks)).toEqual(split(input, [100_000]));
      }),
      propertyRuns(500),
    );
  });
});
