import { expect, test } from "vitest";
import { faultsOf, rule } from "./fixtures.ts";
import { REFUSED } from "./refused.ts";

const refused = REFUSED.map((row) => ({ ...row, faults: faultsOf(row.input) }));

test("the first fault of each refused input has its path and its code", () => {
  const wrong = refused.filter(({ path, code, faults: [first] }) => {
    return first?.path !== path || first.code !== code;
  });
  expect(wrong).toEqual([]);
});

test("refused.txt has the messages of all refused inputs, grouped by the allowed values", async () => {
  const groups = new Map<string, string[]>();
  for (const { input, faults } of refused) {
    for (const [index, { path, code, message }] of faults.entries()) {
      const [start, allowed = "Other faults"] = message.split(/; allowed: |(?<=\?) Allowed: /);
      const group = groups.get(allowed) ?? [];
      const of = index === 0 ? shown(input) : `${shown(input)}, too`;
      groups.set(allowed, [
        ...group,
        `  ${path || "the configuration"} (${code}) ${of} → ${start}`,
      ]);
    }
  }
  const text = [...groups].map(([allowed, lines]) => [`${allowed}:`, ...lines, ""].join("\n"));
  await expect(text.join("\n")).toMatchFileSnapshot("refused.txt");
});

/** The longest shown input, in characters. */
const MAX_SHOWN = 100;

/** Returns an input on one line. Of a single rule, only the fields that its test is about. */
function shown(input: unknown): string {
  const { rules, ...others } = Object(input);
  const [only, ...more] = Array.isArray(rules) ? rules : [];
  const usual = Object.entries(rule());
  const fields =
    only?.name === "api" && more.length === 0
      ? Object.entries(only).filter(([name, value]) =>
          usual.every(([each, same]) => each !== name || same !== value),
        )
      : undefined;
  const isEmpty = Array.isArray(rules) && rules.length === 0;
  const relevant = isEmpty ? others : fields ? { ...Object.fromEntries(fields), ...others } : input;
  const text = JSON.stringify(relevant, replaced) ?? String(input);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** A replacer for JSON, which would leave out functions and write NaN as null. */
function replaced(_key: string, value: unknown): unknown {
  if (typeof value === "function") return "() => …";
  return Number.isNaN(value) || value === Infinity ? String(value) : value;
}
