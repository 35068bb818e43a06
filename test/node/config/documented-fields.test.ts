import { globSync, readFileSync } from "node:fs";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { ruleFields } from "../../../src/config/rule.ts";
import { configFields } from "../../../src/config/schema.ts";

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

const page = readFileSync("docs/configuration.md", "utf8");

/** Returns the defaults in the table of a section of docs/configuration.md, by the names of the fields. */
function documentedDefaults(heading: string): Map<string, string> {
  const [, section = ""] = page.split(`\n## ${heading}\n`);
  const [table = ""] = section.split("\n#");
  const rows = table.matchAll(/^\| (`\w+`(?:, `\w+`)*) \|.*\| (.*) \|$/gm);
  return new Map(
    [...rows].flatMap(([, names = "", value = ""]) =>
      [...names.matchAll(/\w+/g)].map(([name]) => [name, value] as const),
    ),
  );
}

describe.each([
  ["Top level", configFields, /^ConfigInput\./],
  ["A rule", ruleFields, /^(RuleInput|LimitFields|LimitExtras)\./],
] as const)("the table %j of docs/configuration.md", (heading, schemas, types) => {
  const documented = documentedDefaults(heading);

  it("has a row for each field that the schema has, and no other row", () => {
    expect([...documented.keys()].sort()).toEqual(Object.keys(schemas).sort());
  });

  it.each(
    Object.entries<v.GenericSchema>(schemas).flatMap(([name, schema]) => {
      const value: unknown = v.getDefault(schema as never);
      return typeof value === "object" || value === undefined ? [] : [{ name, value }];
    }),
  )("has the default of $name that the schema and the comment have", ({ name, value }) => {
    const field = fields.find((each) => types.test(each.name) && each.name.endsWith(`.${name}`));
    const [, inComment] = /@default (.*)/.exec(field?.comment ?? "") ?? [];
    const isWords = !/^["\d[]|^(true|false)$/.test(inComment ?? "");
    expect(isWords || inComment === JSON.stringify(value), inComment).toBe(true);
    const [inTable] = documented.get(name)?.match(/(?<=^`).*(?=`$)/) ?? [];
    expect(inTable).toBe(JSON.stringify(value));
  });
});
