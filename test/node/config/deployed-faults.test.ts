import { build } from "esbuild";
import { describe, expect, test } from "vitest";

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
}

/** Bundles edge-weir/config as wrangler does, and imports the bundle. */
async function bundled(nodeEnv: string): Promise<{ code: string; module: ConfigModule }> {
  const { outputFiles } = await build({
    entryPoints: ["src/config/index.ts"],
    bundle: true,
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
const development = (await bundled("development")).module;

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

  test("reports the path and the allowed values of each fault, and where to find the cures", () => {
    const rules = [{ name: "api", limit: -1, window: "1 minute", max: 5 }];
    expect(messageOf(module, { rules }).split("\n")).toEqual([
      "ConfigError: Weir's configuration has 3 faults:",
      expect.stringMatching(/^ {2}rules\[0\]\.limit: allowed: a whole number from 0 to \d+$/),
      expect.stringMatching(/^ {2}rules\[0\]\.window: allowed: "10s", "1m"/),
      expect.stringMatching(/^ {2}rules\[0\]\.max: allowed: name, /),
      "Run npx weir check: it also prints the given values and the cures.",
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
