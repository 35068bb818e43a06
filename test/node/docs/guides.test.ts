import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { unstable_readConfig } from "wrangler";
import { callWeir, temporaryFolder } from "../cli/run-weir.ts";
import {
  createProjects,
  filesOf,
  GUIDES,
  type GuideProjects,
  guide,
  isForProduction,
} from "./guides.ts";
import { inlineCodeOf, readPage } from "./pages.ts";

/** The guide about plans, which describes a second version of its configuration. */
const PLANS = "docs/guides/customers.md#plans-by-api-key";

describe("the complete files on the pages of docs/", () => {
  let projects: GuideProjects;

  beforeAll(async () => {
    projects = await createProjects();
  });

  afterAll(() => projects.remove());

  it.each(GUIDES)("pass weir check --strict without a warning: $title", async (each) => {
    const env = isForProduction(each) ? ["--env", "production"] : [];
    const check = await callWeir(["check", "--strict", ...env], projects.folderOf(each));
    expect(check).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("is ok") });
  });

  it("compile", async () => {
    await writeFile(join(projects.folderOf(guide(PLANS)), "d1.config.ts"), withD1());
    const compiler = join(import.meta.dirname, "../../../node_modules/.bin/tsc");
    expect(await run(compiler, ["-p", "."], projects.path)).toEqual({ code: 0, output: "" });
  });

  it("pass the checks of the workflow: docs/deploying.md", async () => {
    const deploying = guide("docs/deploying.md");
    const folder = projects.folderOf(deploying);
    const workflow = deploying.blocks.find(({ language }) => language === "yaml")?.code ?? "";
    const commands = [...workflow.matchAll(/run: npx (weir|wrangler) (.*)/g)];
    const argsOf = ([, , args = ""]: RegExpMatchArray) => args.split(" ");
    const [check, dryRun, deploy] = commands.map(argsOf) as [string[], string[], string[]];
    expect(await callWeir(check, folder)).toMatchObject({ code: 0, stderr: "" });
    expect(deploy).toEqual(dryRun.filter((arg) => arg !== "--dry-run"));
    const wrangler = join(projects.path, "node_modules/wrangler/bin/wrangler.js");
    const { code, output } = await run(process.execPath, [wrangler, ...dryRun], folder);
    expect(output).toContain("--dry-run: exiting now.");
    expect(code).toBe(0);
  });

  it("pass their own tests: docs/development.md", async () => {
    const vitest = join(projects.path, "node_modules/vitest/vitest.mjs");
    const folder = projects.folderOf(guide("docs/development.md"));
    const { code, output } = await run(process.execPath, [vitest, "run"], folder);
    expect(output).toContain("3 passed");
    expect(code).toBe(0);
  });
});

/** Returns the configuration of the guide about plans, with D1 instead of KV as the page describes. */
function withD1(): string {
  const page = readPage(PLANS.replace(/#.*/, ""));
  const statement = inlineCodeOf(page).find((code) => code.includes("env.DB"));
  const config = filesOf(guide(PLANS)).get("weir.config.ts") ?? "";
  const lookup = /return await env\.PLANS.*/;
  expect(config).toMatch(lookup);
  return config.replace("PLANS: KVNamespace", "DB: D1Database").replace(lookup, `${statement}`);
}

it.each(GUIDES)("$title calls only rules that its configuration has", (each) => {
  const config = filesOf(each).get("weir.config.ts") ?? "";
  const code = each.blocks.map((block) => block.code).join("\n");
  for (const [call, rule] of code.matchAll(/\blimit\("([^"]+)"/g)) {
    expect(config, `${call} …)`).toContain(`name: "${rule}"`);
  }
});

describe("docs/deploying.md", () => {
  const { prose } = readPage("docs/deploying.md");
  const table = prose.slice(prose.findIndex((line) => line.startsWith("| inherited |")));
  const rows = table.slice(2, table.indexOf(""));
  const columns = [1, 2].map((at) =>
    rows.flatMap((row) => row.split("|")[at]?.match(/`([a-z_]+)`/g) ?? []),
  );
  const [inherited = [], repeated = []] = columns.map((names) =>
    names.map((name) => name.replaceAll("`", "")),
  );

  it("lists the fields of wrangler.toml that an environment inherits and repeats", async () => {
    expect(inherited).toEqual(expect.arrayContaining(["main", "routes", "exports", "build"]));
    expect(repeated).toEqual(expect.arrayContaining(["vars", "secrets", "durable_objects"]));
    await using folder = await temporaryFolder();
    await folder.write("wrangler.toml", WRANGLER);
    const read = (env?: string) =>
      unstable_readConfig(
        { config: join(folder.path, "wrangler.toml"), ...(env && { env }) },
        { hideWarnings: true },
      );
    // For an environment, wrangler resolves the folder of the build twice, which leads to another folder from /dev/shm.
    const withoutFolder = ({ build: { command }, ...config }: ReturnType<typeof read>) => ({
      ...config,
      build: command,
    });
    const top: Record<string, unknown> = withoutFolder(read());
    const staging: Record<string, unknown> = withoutFolder(read("staging"));
    const sameAsTop = (name: string) => isDeepStrictEqual(staging[name], top[name]);
    expect(staging.name).toBe(`${top.name}-staging`);
    expect(inherited.filter((name) => name !== "name" && !sameAsTop(name))).toEqual([]);
    expect(repeated.filter(sameAsTop)).toEqual([]);
  });
});

/** A wrangler.toml with all fields that the page names, and with an environment without any field. */
const WRANGLER = `
name = "api"
main = "worker.ts"
compatibility_date = "2026-11-01"
workers_dev = false
preview_urls = false
routes = [{ pattern = "api.example.com/*", zone_name = "example.com" }]
build.command = "npx weir check"
exports.CounterObject = { type = "durable-object", storage = "sqlite" }
observability.enabled = true
vars.ORIGIN_URL = "https://origin.example.com"
secrets.required = ["TOKEN"]
durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]
services = [{ binding = "API", service = "api" }]
ratelimits = [{ name = "N", namespace_id = "1", simple = { limit = 1, period = 60 } }]
kv_namespaces = [{ binding = "PLANS", id = "0123456789abcdef0123456789abcdef" }]
[env.staging]
`;

function run(command: string, args: readonly string[], cwd: string) {
  const { promise, resolve } = Promise.withResolvers<{ code: number; output: string }>();
  execFile(
    command,
    args,
    { cwd, env: { ...process.env, NO_COLOR: "1" } },
    (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr });
    },
  );
  return promise;
}
