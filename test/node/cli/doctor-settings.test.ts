import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readSettings, SettingsError } from "../../../cli/doctor/settings.ts";
import { temporaryFolder } from "./run-weir.ts";

const NAME = "WEIR_DOCTOR_TEST";
const WRANGLER = `name = "a"
main = "a.ts"
vars = { ${NAME} = "top", WEIR_ONLY_TOP = "top" }
[env.staging]
vars = { ${NAME} = "staging" }
`;

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
    ["a faulty file", { "wrangler.toml": "name = " }, undefined, /wrangler.toml could not be read/],
    ["no file", {}, "staging", /--env staging needs wrangler's configuration/],
  ] as const)("are refused with a reason: %s", async ([, files, environment, message]) => {
    const attempt = lookUp(files, environment);
    await expect(attempt).rejects.toThrow(SettingsError);
    await expect(attempt).rejects.toThrow(message);
  });
});
