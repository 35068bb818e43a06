import { describe, expect, test } from "vitest";
import { loadConfig } from "../../../cli/load-config.ts";
import { check, runWeir, temporaryFolder, WEIR_CONFIG } from "../cli/run-weir.ts";
import { faultsOf } from "./fixtures.ts";
import { MISTAKES, type Mistake } from "./mistakes.ts";

const title = ({ config, path }: Mistake) => `${path}: ${print(config)}`;

function print(config: unknown): string {
  return JSON.stringify(config, (_key, value) =>
    typeof value === "function" || typeof value === "number" ? String(value) : value,
  );
}

describe("a mistake gets a message that names its cure, or the allowed values", () => {
  test.for(MISTAKES.map((mistake) => [title(mistake), mistake] as const))(
    "%s",
    ([, { config, path, cure }]) => {
      const [first] = faultsOf(config);
      expect(first).toMatchObject({ path, message: expect.stringContaining(cure) });
    },
  );
});

test.for([
  ["window", "rules[0].window"],
  ["key", "rules[0].key"],
  ["limit", "rules[0].limit"],
] as const)("each suggested value of %s is valid", ([, path]) => {
  const suggested = MISTAKES.flatMap((mistake) => {
    const [, text] = (mistake.path === path && /^write ("[^"]*"|\d+)$/.exec(mistake.cure)) || [];
    return text ? [{ config: mistake.config, value: JSON.parse(text) }] : [];
  });
  expect(suggested.length).toBeGreaterThan(0);
  for (const { config, value } of suggested) {
    const messages = faultsOf(withValue(config, path, value)).filter((each) => each.path === path);
    // A key may need another field, such as a parameter of the path.
    expect(messages.filter(({ message }) => message.includes("allowed: "))).toEqual([]);
  }
});

test("no suggested value is the given value, and each suggested value is valid at its place", () => {
  const followed = MISTAKES.filter(({ config }) => isJson(config)).flatMap(({ config, path }) => {
    const message = faultsOf(config)[0]?.message ?? "";
    const suggested = suggestionIn(message, path);
    return suggested === undefined ? [] : [{ config, path, message, suggested }];
  });
  expect(followed.length).toBeGreaterThan(50);
  for (const { config, path, message, suggested } of followed) {
    const [, parent = "", field = ""] = /^(.*?)\.?(\w*)(\[\d+\])?$/.exec(path) ?? [];
    const at = suggested.isField ? parent : path;
    const given = valueAt(config, at);
    const { [field]: _, ...others } = given as Fields;
    const value = suggested.isField ? { ...others, ...suggested.value } : suggested.value;
    expect(value, message).not.toEqual(given);
    const faults = faultsOf(withValue(config, at, value));
    const names = suggested.isField ? Object.keys(suggested.value) : [];
    const places = [path, ...names.map((name) => (at === "" ? name : `${at}.${name}`))];
    // A key may need another field, such as a function in custom.keys.
    const left = faults.filter(
      (each) => places.includes(each.path) && !/needs|is no parameter/.test(each.message),
    );
    expect(left, message).toEqual([]);
  }
});

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

function isNamedApi(rule: unknown): rule is Fields {
  return (rule as Fields | undefined)?.name === "api";
}

function valueAt(config: unknown, path: string): unknown {
  return path
    .split(/[.[\]]+/)
    .filter(Boolean)
    .reduce((at, key) => at?.[key] as Fields, config as Fields | undefined);
}

/** Returns a copy of a configuration with another value at a path such as `rules[0].match.paths[0]`. */
function withValue(config: unknown, path: string, value: unknown): unknown {
  if (path === "") return value;
  const copy = structuredClone(config);
  const keys = path.split(/[.[\]]+/).filter(Boolean);
  const last = keys.pop() ?? "";
  const parent = keys.reduce((at, key) => at[key] as Fields, copy as Fields);
  parent[last] = value;
  return copy;
}

type Fields = Record<string, unknown>;

test("weir check finds each mistake that JSON can hold, and reports its cure", async () => {
  await using folder = await temporaryFolder();
  const inJson = MISTAKES.filter(({ config }) => isJson(config));
  expect(inJson.length).toBeGreaterThan(40);
  for (const [index, { config, path, cure }] of inJson.entries()) {
    const file = `${index}.json`;
    await folder.write(file, JSON.stringify(config));
    const loaded = await loadConfig(`${folder.path}/${file}`);
    expect(loaded).toMatchObject({ kind: "faulty" });
    const [first] = loaded.kind === "faulty" ? loaded.faults : [];
    expect(first).toMatchObject({ path, message: expect.stringContaining(cure) });
  }
});

test("weir check prints the cures of all mistakes in one run, and does not print that the file is ok", async () => {
  // Each rule gets a name of its own, because equal names are faults too, and at most 500 are printed.
  const rules = MISTAKES.filter(({ config }) => isJson(config))
    .flatMap(rulesIn)
    .map((rule, index) => (isNamedApi(rule) ? { ...rule, name: `api-${index}` } : rule));
  const { code, stdout, stderr } = await check("weir.config.json", { rules });
  expect(code).toBe(1);
  expect(stdout + stderr).not.toContain("is ok");
  const cures = MISTAKES.filter((mistake) => isJson(mistake.config) && rulesIn(mistake).length > 0);
  for (const { cure } of cures) expect(stdout + stderr).toContain(cure);
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

function rulesIn({ config }: Mistake): object[] {
  const rules = (config as { readonly rules?: unknown }).rules;
  return Array.isArray(rules) ? rules : [];
}

function isJson(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return typeof value !== "function";
  const isClass = [RegExp, Date, Promise].some((each) => value instanceof each);
  if (isClass) return false;
  return Object.values(value).every(isJson);
}
