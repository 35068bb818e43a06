import fc from "fast-check";
import { expect, it } from "vitest";
import { withLowerCase } from "../../../src/request/matcher.ts";
import { propertyRuns, runs } from "../../suite/runs.ts";

const PARTS = [
  ..."aBzZ09_-.|*",
  "[A-Z]",
  "[^A-Z]",
  "[^aB]+",
  "[A-z]",
  "[0-Z]",
  "[A-]",
  "[-A]",
  "[\\]B-]",
  "[\\wÉ]",
  "[X-Za-c\\d]+",
  "\\D",
  "\\W+",
  "\\S",
  "\\.",
  "\\bB",
  "(?:A|b)",
  "(?<Year>B{2})",
  "(?!A)",
  "{1,2}",
  "É",
];

it("a pattern of a path matches lower-case text exactly as if it ignored case", () => {
  const compile = (pattern: string, flags: string) => {
    try {
      return new RegExp(`^(?:${pattern})$`, flags);
    } catch {
      return undefined;
    }
  };
  let compared = 0;
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...PARTS), { minLength: 1, maxLength: 5 }),
      fc.array(fc.constantFrom(..."abcxyz09_-.é]^\\"), { maxLength: 5 }),
      (parts, characters) => {
        const expected = compile(parts.join(""), "i");
        if (!expected) return;
        compared += 1;
        const text = characters.join("");
        const own = compile(withLowerCase(parts.join("")), "");
        expect(own?.test(text)).toBe(expected.test(text));
      },
    ),
    propertyRuns(20_000),
  );
  expect(compared).toBeGreaterThan(runs(1000));
});

it("needs no modifier, which Node has only since version 23", () => {
  expect(withLowerCase("stripe|GitHub")).toBe("stripe|github");
});
