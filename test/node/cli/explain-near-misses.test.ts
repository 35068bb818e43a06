import { expect, it } from "vitest";
import { explainWith } from "./explain-command.ts";
import { NEAR_MISSES } from "./near-misses.ts";

it.each(Object.entries(NEAR_MISSES))("names the condition that decides for %s", async (_, miss) => {
  const { config, args, env, field, result = "fails", actual, expected, why, showsTexts } = miss;
  const rule = { name: "near", limit: 5, window: "1m", ...miss.rule };
  const { explanation, text } = await explainWith({ ...config, rules: [rule] }, args, env);
  expect(explanation).toMatchObject({
    outcome: "unmatched",
    rules: [{ rule: "near", applies: false }],
  });
  const [explained] = explanation.rules;
  const deciding = explained?.conditions.at(-1);
  expect(deciding).toMatchObject({
    field,
    result,
    actual: typeof actual === "string" ? actual : expect.stringMatching(actual),
    expected: typeof expected === "string" ? expected : expect.stringMatching(expected),
  });
  if (why) expect(`${explained?.why} ${deciding?.note}`).toMatch(why);
  // Texts of the configuration may be secrets.
  if (!showsTexts) expect(text).not.toContain("hidden-");
  const label = /^(?:match\.except|exempt)\./.test(field) ? "excepted" : "expected";
  const line = text.split("\n").find((each) => each.startsWith("– near"));
  expect(line).toBe(`– near  ${field}: ${deciding?.actual} (${label}: ${deciding?.expected})`);
});

it("has at least thirty near misses", () => {
  expect(Object.keys(NEAR_MISSES).length).toBeGreaterThanOrEqual(30);
});
