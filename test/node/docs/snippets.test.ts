import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { unstable_readConfig } from "wrangler";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { isFile } from "./guides.ts";
import { inlineCodeOf, PAGES, readPage } from "./pages.ts";

// The tests of this file check every configuration on the pages. All other code on the pages must
// be part of an example, or of a file in test/types. test/node/examples/ runs the examples, and
// `npm run types` compiles test/types. So all code on the pages is tested. Complete files on the
// pages of docs/ have their own tests: ./guides.test.ts checks them, and test/workerd/guides.test.ts
// runs their configurations.

/**
 * The pages for users. test/suite/README.md is left out, because its test needs a store that the
 * reader writes.
 */
const pages = PAGES.filter((path) => !path.startsWith("test/")).map(readPage);
const snippets = pages.flatMap(({ path, blocks }) =>
  blocks
    .filter(({ language }) => language === "ts" || language === "toml")
    .map((block) => ({ ...block, path, title: `${path}, ${linesOf(block.code)[0]}` })),
);

/** The files of all examples and of test/types, with their trimmed lines. Empty lines are left out. */
const examples = globSync(["examples/*/**/*.{ts,toml}", "test/types/*.ts"]).map((path) => ({
  path,
  lines: linesOf(readFileSync(path, "utf8")),
}));

/** Fields that a snippet may begin with, at the top level of a configuration or in a rule. */
const TOP_LEVEL = /^(custom|jwt|origins?|prefix|nativeLimiter|usage|store):/;
const OF_RULE = /^(cost|count|exempt|key|limits?|match|name|tiers):/;

function linesOf(code: string): string[] {
  return code
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

function isConfig(code: string): boolean {
  const isFragment = [/^\{/, TOP_LEVEL, OF_RULE].some((pattern) => pattern.test(code));
  return code.includes("defineConfig(") || isFragment;
}

/**
 * Reads a wrangler.toml with wrangler. Returns the names of the tables that wrangler ignores, and
 * of those that it reads as another type.
 */
function unknownTables(toml: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), "weir-docs-"));
  try {
    const path = join(folder, "wrangler.toml");
    writeFileSync(path, toml.startsWith("name = ") ? toml : `name = "docs"\n${toml}`);
    const config: Record<string, unknown> = { ...unstable_readConfig({ config: path }) };
    const headers = [...toml.matchAll(/^(\[\[?)(\w+)\]/gm)];
    return headers.flatMap(([, bracket, table = ""]) => {
      const value = config[table];
      const isRead = bracket === "[[" ? Array.isArray(value) && value.length > 0 : isTable(value);
      return isRead ? [] : table;
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function isTable(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a file has all these lines in this order. Other lines may be between them. */
function contains(lines: readonly string[], wanted: readonly string[]): boolean {
  let at = -1;
  return wanted.every((line) => {
    at = lines.indexOf(line, at + 1);
    return at !== -1;
  });
}

/** Returns the value of an expression. The expression is code from the project's own pages. */
function evaluate(expression: string): ConfigInput {
  const script = stripTypeScriptTypes(`(${expression})`);
  return new Function("defineConfig", `return ${script};`)((input: unknown) => input);
}

/**
 * Returns the configurations in a snippet. Required fields that the snippet leaves out get a valid
 * value.
 */
function configsOf(code: string): ConfigInput[] {
  const bare = code.trim().replace(/,$/, "");
  if (code.includes("defineConfig(")) {
    return [evaluate(/defineConfig\((.*)\)/s.exec(code)?.[1] ?? "")];
  }
  // Each line belongs to a separate configuration.
  if (TOP_LEVEL.test(bare)) {
    return bare.split("\n").map((line) => evaluate(`{ rules: [], ${line} }`));
  }
  const rule = bare.startsWith("{") ? bare : `{ ${bare} }`;
  const hasLimit = /\blimits?:/.test(rule.split("tiers:")[0] ?? "");
  const limit = hasLimit ? "" : 'limit: 5, window: "1m",';
  const functions = [...code.matchAll(/custom:(\w+)/g)].map(([, name]) => `${name}: () => "a"`);
  const custom = `custom: { keys: { ${functions.join(", ")} } }`;
  return [
    evaluate(`{ jwt: { secret: "S" }, ${custom}, rules: [{ name: "rule", ${limit} ...${rule} }] }`),
  ];
}

describe("code on the pages", () => {
  const parts = snippets.filter(({ path, code }) => !(path.startsWith("docs/") && isFile(code)));
  const code = parts.filter(({ language }) => language === "ts");
  const programs = code.filter(({ code }) => !isConfig(code));
  const configs = code.filter(({ code }) => isConfig(code));
  const bindings = parts.filter(({ language }) => language === "toml");

  it.each(programs)("$title is part of an example", ({ code }) => {
    const wanted = linesOf(code);
    const holders = examples.filter(({ lines }) => contains(lines, wanted));
    expect(holders).not.toEqual([]);
  });

  it.each(configs)("$title is a valid configuration", ({ code }) => {
    for (const config of configsOf(code)) expect(() => defineConfig(config)).not.toThrow();
  });

  it.each(bindings)("$title is understood by wrangler", ({ code }) => {
    expect(unknownTables(code)).toEqual([]);
  });
});

describe("rules in the tables and lists about fixed windows", () => {
  const pages = ["docs/how-it-counts.md", "test/seeds/README.md"].map(readPage);
  const rules = pages.flatMap(inlineCodeOf).filter((code) => /^(key|limits?|match): /.test(code));

  it("are many", () => {
    expect(rules.length).toBeGreaterThan(20);
  });

  it.each(rules)("%s is valid", (code) => {
    for (const config of configsOf(code)) expect(() => defineConfig(config)).not.toThrow();
  });
});
