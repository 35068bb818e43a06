import type { Explanation } from "../../../src/explain/explanation.ts";
import { callWeir, type Run, temporaryFolder } from "./run-weir.ts";

/** Variables of the developer's shell must not change the results. */
const CLEAN = { WEIR_MODE: undefined, WEIR_KEY_SECRET: undefined, WEIR_PREFIX: undefined };

export async function runExplain(
  config: object | string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
): Promise<Run> {
  await using folder = await temporaryFolder();
  await folder.write(
    "weir.config.json",
    typeof config === "string" ? config : JSON.stringify(config),
  );
  for (const [name, content] of Object.entries(files)) await folder.write(name, content);
  const command = ["explain", "--config", "weir.config.json", ...args];
  return await callWeir(command, folder.path, { ...CLEAN, ...env });
}

/** Runs `weir explain` with and without `--json`, and expects that both succeed. */
export async function explainWith(
  config: object,
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
): Promise<{ explanation: Explanation & { notes: string[] }; text: string }> {
  const run = await runExplain(config, args, env);
  const json = await runExplain(config, [...args, "--json"], env);
  for (const { code, stderr } of [run, json]) {
    if (code !== 0 || stderr !== "") throw new Error(`exit code ${code}: ${stderr}`);
  }
  return { explanation: JSON.parse(json.stdout), text: run.stdout };
}
