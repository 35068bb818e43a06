import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { loadConfig } from "../../../cli/load-config.ts";
import { check, runWeir, temporaryFolder, WEIR_CONFIG } from "../cli/run-weir.ts";
import { faultsOf, valueAt, withValue } from "./fixtures.ts";
import { REFUSED } from "./refused.ts";

/** The refused inputs that JSON can hold, each with its first message. */
const inJson = REFUSED.filter(({ input }) => isJson(input)).map(({ input, path }) => {
  return { input, path, message: faultsOf(input)[0]?.message ?? "" };
});

/** The inputs whose message has a cure. */
const cured = inJson.filter(({ message }) => /; (?!allowed: )/.test(message));

function isJson(value: unknown): boolean {
  const text: string | undefined = JSON.stringify(value);
  return text !== undefined && isDeepStrictEqual(JSON.parse(text), value);
}

test.for([
  ["window", "rules[0].window"],
  ["key", "rules[0].key"],
  ["limit", "rules[0].limit"],
] as const)("each suggested value of %s is valid", ([, path]) => {
  const suggested = inJson.flatMap(({ input, path: at, message }) => {
    const [, text] = (at === path && /; write ("[^"]*"|\d+)(?=[; ])/.exec(message)) || [];
    return text ? [{ input, value: JSON.parse(text) }] : [];
  });
  expect(suggested.length).toBeGreaterThan(0);
  for (const { input, value } of suggested) {
    const messages = faultsOf(withValue(input, path, value)).filter((each) => each.path === path);
    // A key may need another field, such as a parameter of the path.
    expect(messages.filter(({ message }) => message.includes("allowed: "))).toEqual([]);
  }
});

test("no suggested value is the given value, and each suggested value is valid at its place", () => {
  const followed = inJson.flatMap((each) => {
    const suggested = suggestionIn(each.message, each.path);
    // The suggestion for the name of a tier is another name.
    const isName = /\btiers\.limits\["[^"]*"\]$/.test(each.path);
    return suggested === undefined || isName ? [] : [{ ...each, suggested }];
  });
  expect(followed.length).toBeGreaterThan(80);
  for (const { input, path, message, suggested } of followed) {
    const [, parent = "", field = ""] = /^(.*?)\.?(\w*)(\[\d+\])?$/.exec(path) ?? [];
    const at = suggested.isField ? parent : path;
    const given = valueAt(input, at);
    const { [field]: _, ...others } = given as Fields;
    const value = suggested.isField ? { ...others, ...suggested.value } : suggested.value;
    expect(value, message).not.toEqual(given);
    const faults = faultsOf(withValue(input, at, value));
    const names = suggested.isField ? Object.keys(suggested.value) : [];
    const places = [path, ...names.map((name) => (at === "" ? name : `${at}.${name}`))];
    // A key may need another field, such as a function in custom.keys.
    const left = faults.filter((each) => places.includes(each.path) && each.code !== "needs");
    expect(left, message).toEqual([]);
  }
});

type Fields = Record<string, unknown>;

/**
 * Returns the value in a suggestion such as `write "1m"`, or the fields in `write limit: 5, window:
 * "1m"`; undefined if the suggestion contains other words.
 */
function suggestionIn(message: string, path: string) {
  const [, text = ""] = /; write (.*?)(?: instead)?(?:;|$)/.exec(message) ?? [];
  const json = text.replace(/([{,]\s*|^)(\w+):/g, '$1"$2":');
  const [field = ""] = path.split(".").slice(-1);
  try {
    if (!/^"\w+":/.test(json)) return { value: JSON.parse(json) as Fields, isField: false };
    const value: Fields = JSON.parse(`{${json}}`);
    // The suggestion for an object repeats its name: write match: { … }.
    return Object.keys(value).join() === field
      ? { value: value[field] as Fields, isField: false }
      : { value, isField: true };
  } catch {
    return undefined;
  }
}

test("weir check finds the faults of a file, and reports their cures", async () => {
  await using folder = await temporaryFolder();
  expect(cured.length).toBeGreaterThan(300);
  for (const [index, { input }] of cured.entries()) {
    const file = `${index}.json`;
    await folder.write(file, JSON.stringify(input));
    const loaded = await loadConfig(`${folder.path}/${file}`);
    expect(loaded).toEqual({ kind: "faulty", faults: faultsOf(input) });
  }
});

test("weir check prints the cures of many faults in one run, and does not print that the file is ok", async () => {
  // At most 500 faults are printed.
  const rules = cured
    .flatMap(({ input }) =>
      valueAt(input, "rules.length") === 1 ? [valueAt(input, "rules[0]")] : [],
    )
    .slice(0, 300);
  const renamed = rules.map((rule, index) => ({ ...(rule as Fields), name: `api-${index}` }));
  const { code, stdout, stderr } = await check("weir.config.json", { rules: renamed });
  expect(code).toBe(1);
  expect(stdout + stderr).not.toContain("is ok");
  const messages = faultsOf({ rules: renamed }).map(({ path, message }) => `${path}: ${message}`);
  expect(messages.length).toBeGreaterThan(200);
  for (const message of messages) expect(stdout + stderr).toContain(message);
});

test("weir check prints the cures on a build server that sets NODE_ENV to production", async () => {
  await using folder = await temporaryFolder();
  const rules = [{ name: "api", limit: 5, window: "1 minute" }];
  await folder.write(
    "rules.mjs",
    `import { defineConfig } from ${JSON.stringify(WEIR_CONFIG)};
     export default defineConfig(${JSON.stringify({ rules })});`,
  );
  const run = await runWeir(["check", "--config", "rules.mjs"], folder.path, {
    NODE_ENV: "production",
  });
  expect(run.code).toBe(1);
  expect(run.stdout + run.stderr).toContain('got "1 minute"; write "1m"; allowed: "10s", "1m"');
});
