import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { unstable_getVarsForDev, unstable_readConfig } from "wrangler";
import { CommandFailure } from "../../../cli/command-failure.ts";
import { readSettings } from "../../../cli/doctor/settings.ts";
import { temporaryFolder } from "./run-weir.ts";

const NAME = "WEIR_DOCTOR_TEST";
const WRANGLER = `name = "a"
main = "a.ts"
vars = { ${NAME} = "top", WEIR_ONLY_TOP = "top" }
[env.staging]
vars = { ${NAME} = "staging" }
`;

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Reads a setting in a folder with these files. */
async function lookUp(
  files: Readonly<Record<string, string>>,
  environment?: string,
  name: string = NAME,
) {
  await using folder = await temporaryFolder();
  for (const [file, content] of Object.entries(files)) await folder.write(file, content);
  const settings = await readSettings(join(folder.path, "weir.config.ts"), environment);
  return settings(name);
}

describe("the settings of weir doctor", () => {
  test.for([
    [".dev.vars.staging", "staging", [".dev.vars.staging", ".dev.vars", ".env"]],
    [".dev.vars", "staging", [".dev.vars", ".env.staging"]],
    [".dev.vars", undefined, [".dev.vars", ".dev.vars.staging", ".env"]],
    [".env.staging.local", "staging", [".env.staging.local", ".env.staging", ".env.local", ".env"]],
    [".env.staging", "staging", [".env.staging", ".env.local", ".env"]],
    [".env.local", "staging", [".env.local", ".env"]],
    [".env", undefined, [".env", ".env.staging"]],
  ] as const)(
    "come from %s, as in wrangler (environment %s)",
    async ([file, environment, files]) => {
      const written = Object.fromEntries(files.map((each) => [each, `${NAME}="in ${each}"`]));
      const all = { ...written, "wrangler.toml": WRANGLER };
      expect(await lookUp(all, environment)).toEqual({ value: `in ${file}`, source: file });
    },
  );

  test("come from the vars of wrangler's environment", async () => {
    expect(await lookUp({ "wrangler.toml": WRANGLER }, "staging")).toEqual({
      value: "staging",
      source: "wrangler.toml, env.staging: vars",
    });
    expect(await lookUp({ "wrangler.toml": WRANGLER })).toMatchObject({ value: "top" });
    // Vars are not inherited by environments.
    expect(await lookUp({ "wrangler.toml": WRANGLER }, "staging", "WEIR_ONLY_TOP")).toBe(undefined);
  });

  test("come from an environment variable first", async () => {
    process.env[NAME] = "exported";
    try {
      const found = await lookUp({ ".dev.vars": `${NAME}=file` });
      expect(found).toEqual({ value: "exported", source: "the environment" });
    } finally {
      delete process.env[NAME];
    }
  });

  test.for([
    ["an unknown environment", { "wrangler.toml": WRANGLER }, "stagin", /stagin/],
    [
      "a faulty file",
      { "wrangler.toml": "name = " },
      undefined,
      /wrangler.toml: The file cannot be read: .+ \(line 1, column 8\)/,
    ],
    ["no file", {}, "staging", /The environment staging needs wrangler's configuration/],
  ] as const)("are refused with a reason: %s", async ([, files, environment, message]) => {
    const attempt = lookUp(files, environment);
    await expect(attempt).rejects.toThrow(CommandFailure);
    await expect(attempt).rejects.toThrow(message);
  });
});

describe("the settings of weir doctor are those of wrangler dev", () => {
  test.for<[string, Readonly<Record<string, string>>, Readonly<Record<string, string>>?]>([
    ["a byte order mark", { ".dev.vars": `\ufeff${NAME}=x\n` }],
    ["a colon", { ".dev.vars": `${NAME}: x\n` }],
    ["carriage returns", { ".dev.vars": `OTHER=1\r${NAME}=x\r` }],
    ["a comment", { ".dev.vars": `export ${NAME}="a#b" # c\n` }],
    ["escapes", { ".dev.vars": `${NAME}="a\\nb"\n` }],
    ["a quotation mark that is not closed", { ".dev.vars": `${NAME}="ab\nOTHER=1\n` }],
    ["a reference in .dev.vars", { ".dev.vars": `OTHER=1\n${NAME}=a\${OTHER}b\n` }],
    ["a reference in .env", { ".env": `OTHER=1\n${NAME}=a\${OTHER}b\n` }],
    ["a reference to an earlier file", { ".env": "OTHER=1", ".env.local": `${NAME}=a$OTHER` }],
    ["an empty value before a var", { ".dev.vars": `${NAME}=\n` }],
    ["an empty value in .env.local", { ".env.local": `${NAME}=\n`, ".env": `${NAME}=x\n` }],
    [
      "CLOUDFLARE_ENV",
      { ".dev.vars.staging": `${NAME}=staging\n`, ".dev.vars": `${NAME}=x\n` },
      { CLOUDFLARE_ENV: "staging" },
    ],
    ["CLOUDFLARE_ENV and vars", {}, { CLOUDFLARE_ENV: "staging" }],
    [
      "CLOUDFLARE_LOAD_DEV_VARS_FROM_DOT_ENV",
      { ".env": `${NAME}=x\n` },
      { CLOUDFLARE_LOAD_DEV_VARS_FROM_DOT_ENV: "false" },
    ],
  ])("with %s", async ([, files, variables = {}]) => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    await using folder = await temporaryFolder();
    const all = { "wrangler.toml": WRANGLER, ...files };
    for (const [file, content] of Object.entries(all)) await folder.write(file, content);
    const wrangler = join(folder.path, "wrangler.toml");
    const { vars } = unstable_readConfig({ config: wrangler }, { hideWarnings: true });
    const environment = variables.CLOUDFLARE_ENV;
    const inWrangler = unstable_getVarsForDev(wrangler, undefined, vars, environment, true);
    const settings = await readSettings(join(folder.path, "weir.config.ts"), undefined);
    const { value } = inWrangler[NAME] as { value: string };
    expect(settings(NAME)?.value ?? "").toBe(value);
  });

  test('with --env "" for the top level, even if CLOUDFLARE_ENV names an environment', async () => {
    vi.stubEnv("CLOUDFLARE_ENV", "staging");
    expect(await lookUp({ "wrangler.toml": WRANGLER }, "")).toMatchObject({ value: "top" });
    expect(await lookUp({ "wrangler.toml": WRANGLER })).toEqual({
      value: "staging",
      source: "wrangler.toml, env.staging: vars",
    });
  });

  test("with the file that --wrangler names, and the secrets beside it", async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, "app"));
    await folder.write("app/other.toml", WRANGLER);
    await folder.write("app/.dev.vars", "SECRET=x");
    const file = join(folder.path, "weir.config.ts");
    const settings = await readSettings(file, undefined, join(folder.path, "app/other.toml"));
    expect(settings(NAME)).toEqual({ value: "top", source: "other.toml: vars" });
    expect(settings("SECRET")).toEqual({ value: "x", source: ".dev.vars" });
  });

  test("and do not appear in an error about the syntax of wrangler's configuration", async () => {
    const wrangler = 'name = "a"\n[vars]\nTOKEN = hunter2secret\n';
    const attempt = lookUp({ "wrangler.toml": wrangler });
    await expect(attempt).rejects.toThrow(CommandFailure);
    await expect(attempt).rejects.not.toThrow("hunter2secret");
  });
});
