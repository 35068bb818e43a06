import { parse } from "@babel/parser";
import { build } from "esbuild";
import type { BaseIssue } from "valibot";
import { describe, expect, test } from "vitest";
import { codeOf, keysOf } from "../../../src/config/faults.ts";
import { REFUSED } from "./refused.ts";

const SECRET = "s3cr3t-value";
const LIMIT = { limit: 5, window: "1m" };

/** Configurations whose paths or values contain a secret. */
const WITH_SECRET: readonly (readonly [string, object])[] = [
  ["the value of a header", { exempt: { headers: { "x-a": `${SECRET} ` } } }],
  ["the name of a header", { exempt: { headers: { [`x-a: ${SECRET}`]: "a" } } }],
  ["an unknown field of exempt", { exempt: { [`x=${SECRET}`]: SECRET } }],
  ["exempt itself", { exempt: [SECRET] }],
  ["the name of a tier", { tiers: { by: "header:x-api-key", limits: { [SECRET]: 5 } } }],
  ["a tier outside limits", { tiers: { by: "header:x-api-key", [SECRET]: LIMIT } }],
  ["the value of a key", { key: `header:x-api-key:${SECRET}` }],
  ["a password in a host", { match: { hosts: [`https://user:${SECRET}@a.example`] } }],
  ["the query of a URL", { match: { paths: [`https://a.example/a?token=${SECRET}`] } }],
  ["a path that is a URL", { match: `https://user:${SECRET}@a.example/a?token=${SECRET}` }],
];

interface ConfigModule {
  readonly defineConfig: (input: unknown) => unknown;
  readonly issuesOf: (input: unknown) => readonly BaseIssue<unknown>[];
}

const ENTRY = `
  export { defineConfig } from "./index.ts";
  import { safeParse } from "valibot";
  import { ConfigSchema } from "./schema.ts";
  export const issuesOf = (input) => safeParse(ConfigSchema, input).issues ?? [];
`;

/** Bundles edge-weir/config as wrangler does, and imports the bundle. */
async function bundled(
  nodeEnv: string,
  minify = false,
): Promise<{ code: string; module: ConfigModule }> {
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, loader: "ts", resolveDir: "src/config" },
    bundle: true,
    minify,
    write: false,
    format: "esm",
    define: {
      "process.env.NODE_ENV": JSON.stringify(nodeEnv),
      "globalThis.process.env.NODE_ENV": JSON.stringify(nodeEnv),
    },
  });
  const code = outputFiles[0]?.text ?? "";
  return { code, module: await import(`data:text/javascript,${encodeURIComponent(code)}`) };
}

const { code, module } = await bundled("production");
const minified = await bundled("production", true);
const development = (await bundled("development")).module;

/** Returns all texts in a syntax tree. */
function textsIn(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(textsIn);
  if (typeof node !== "object" || node === null) return [];
  const { type, value } = node as { readonly type?: unknown; readonly value?: unknown };
  if (type === "StringLiteral") return [String(value)];
  if (type === "TemplateElement") return [(value as { readonly raw: string }).raw];
  return Object.values(node).flatMap(textsIn);
}

/** The code of an issue, its kind, and the keys of its path. */
function placeOf(issue: BaseIssue<unknown>): unknown[] {
  return [codeOf(issue), issue.type, ...keysOf(issue)];
}

function messageOf({ defineConfig }: ConfigModule, input: unknown): string {
  try {
    defineConfig(input);
    return "";
  } catch (error) {
    return String(error);
  }
}

describe("a Worker that wrangler deploy has bundled", () => {
  test("does not contain the code that explains faults", () => {
    expect(code).not.toContain("did you mean");
    expect(code).not.toContain("config/explain/");
    expect(code).not.toContain("leven");
  });

  // A new text must be an argument of faultText. The texts of the URL and of the prefix are also
  // used for vars, which only the Worker can read.
  test("contains no texts of faults if it is minified", () => {
    const sentences = textsIn(parse(minified.code, { sourceType: "module" }).program).filter(
      (text) => / \w+ \w+ \w+ /.test(text),
    );
    expect(sentences).toEqual([
      expect.stringContaining("more; correct the listed faults first"),
      expect.stringContaining("an absolute http or https URL"),
      expect.stringContaining("1 to 64 characters of A-Z"),
      expect.stringContaining("Run npx weir check"),
    ]);
  });

  test.each([
    ["as it is", module],
    ["minified", minified.module],
  ])("finds the same faults as weir check (%s)", (_, copy) => {
    for (const { input } of REFUSED) {
      const issues = development.issuesOf(input).map(placeOf);
      expect(copy.issuesOf(input).map(placeOf)).toEqual(issues);
    }
  });

  test("reports the path of each fault, and where to find the cures", () => {
    const rules = [{ name: "api", limit: -1, max: 5 }];
    expect(messageOf(module, { rules }).split("\n")).toEqual([
      "ConfigError: Weir's configuration has 3 faults:",
      "  rules[0].limit: not-allowed",
      "  rules[0].max: unknown-field",
      "  rules[0].window: missing",
      "Run npx weir check: it prints what is allowed, and the cures.",
    ]);
  });
});

test("wrangler dev bundles the code that explains faults", () => {
  const rules = [{ name: "api", limit: 5, window: "1 minute" }];
  expect(messageOf(development, { rules })).toContain('got "1 minute"; write "1m"');
});

describe.each([
  ["deployed", module],
  ["wrangler dev", development],
] as const)("the faults of a configuration contain no secret (%s)", (_, copy) => {
  test.for(WITH_SECRET)("from %s", ([, fields]) => {
    const message = messageOf(copy, { rules: [{ name: "api", ...LIMIT, ...fields }] });
    expect(message).toContain("ConfigError");
    expect(message).not.toContain(SECRET);
  });

  test("from jwt", () => {
    expect(messageOf(copy, { rules: [], jwt: SECRET })).toContain("ConfigError");
    const message = messageOf(copy, { rules: [], jwt: { secret: SECRET } });
    expect(message).toContain("jwt.secret");
    expect(message).not.toContain(SECRET);
  });
});

// `weir check` and `wrangler dev` show these names to the developer only.
test.for<[string, object]>([
  ["the name of a header in a condition", { match: { headers: { [`x-a: ${SECRET}`]: true } } }],
  ["the name of a parameter in a condition", { match: { query: { [`token ${SECRET}`]: 1 } } }],
  ["the name of a header of denials", { response: { headers: { [`x-a: ${SECRET}`]: "a" } } }],
  ["an unknown field", { [SECRET]: 1 }],
])("a deployed Worker shows no secret from %s", ([, fields]) => {
  const message = messageOf(module, { rules: [{ name: "api", ...LIMIT, ...fields }] });
  expect(message).toContain("ConfigError");
  expect(message).not.toContain(SECRET);
});
