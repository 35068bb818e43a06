import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

interface Field {
  /** The names of the interface and of the field, such as `RuleInput.key`. */
  readonly name: string;
  readonly isOptional: boolean;
  /** The comment in front of the field; empty if there is none. */
  readonly comment: string;
}

/**
 * These optional fields have no default, because the user must set one field of a group, such as
 * `secret` or `jwks`.
 */
const ONE_OF_SEVERAL = [
  "JwtInput.secret",
  "JwtInput.jwks",
  "LimitFields.limit",
  "LimitFields.window",
  "LimitFields.limits",
  "OriginInput.binding",
  "OriginInput.url",
];

/**
 * Every field that a user may write in a configuration. These fields are in interfaces whose names
 * end in Input, Fields or Extras.
 */
const fields: Field[] = globSync("src/config/*.ts").flatMap((path) => {
  const source = readFileSync(path, "utf8");
  const interfaces = source.matchAll(
    /^(?:export )?interface ((?!Parsed)\w+(?:Input|Fields|Extras))\b[^{]*\{\n(.*?)^\}/gms,
  );
  return [...interfaces].flatMap(([, type, body = ""]) =>
    [...body.matchAll(/(\/\*\*(?:(?!\*\/).)*\*\/\n)?^ {2}readonly (\w+)(\??):/gms)].map(
      ([, comment = "", name, mark]) => ({
        name: `${type}.${name}`,
        isOptional: mark === "?",
        comment,
      }),
    ),
  );
});

describe("a field of the configuration", () => {
  it("is read from the sources by this test", () => {
    expect(fields.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["ConfigInput.rules", "RuleInput.key", "LimitExtras.capacity"]),
    );
    expect(fields.length).toBeGreaterThan(45);
  });

  it.each(fields)("$name has a comment, which editors show", ({ comment }) => {
    expect(comment).toMatch(/^\/\*\*\s+(\* )?[A-Z`"]/);
  });

  it.each(fields.filter(({ isOptional, name }) => isOptional && !ONE_OF_SEVERAL.includes(name)))(
    "$name names its default",
    ({ comment }) => {
      expect(comment).toMatch(/@default \S/);
    },
  );
});
