import { execFile } from "node:child_process";
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { linksOf, PAGES, readPage } from "../docs/pages.ts";

const ROOT = join(import.meta.dirname, "../../..");
const MODULES = join(ROOT, "node_modules");

/**
 * The files that packing reads. The test packs a copy of them, so that it changes nothing for tests
 * that run at the same time.
 */
const COPIED = [
  "src",
  "cli",
  "create",
  "deploy",
  "docs",
  "examples",
  "scripts",
  "package.json",
  "tsconfig.json",
  "LICENSE",
  ...PAGES.filter((page) => !page.includes("/")),
];

const CONFIG = `
  import { type Config, defineConfig } from "edge-weir/config";
  const config = defineConfig({
    rules: [{ name: "login", match: { methods: ["POST"], paths: ["/login"] }, limit: 5, window: "1m", onError: "closed" }],
    custom: {
      keys: {
        async plan(request, { env, ctx, c }) {
          ctx.waitUntil(env.PLANS.put("seen", request.url));
          return (await env.PLANS.get(request.url)) ?? c?.req.path;
        },
      },
    },
  });
  export default config satisfies Config;
`;

const WORKER = `
  import { Hono } from "hono";
  import { rateLimit, weir, WeirService } from "edge-weir";
  import { weirAdmin } from "edge-weir/admin";
  import config from "./weir.config.ts";
  export { CounterObject } from "edge-weir";
  export class Limits extends WeirService<typeof config> {
    readonly config = config;
  }
  export const app = new Hono()
    .route("/", weirAdmin(config))
    .use(rateLimit(config, { rule: "login" }));
  export default weir(config);
`;

/** Code for a Worker that reads the tokens of a language model. */
const LLM = `
  import { llmReserve, llmUsage } from "edge-weir/llm";
  export const custom = {
    costs: { estimate: llmReserve({ output: 500 }) },
    settle: { usage: llmUsage({ weights: { output: 5 } }) },
  };
`;

const WRANGLER = `
  name = "installed"
  main = "worker.ts"
  compatibility_date = "2026-11-01"
  workers_dev = false
  durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]
  exports.CounterObject = { type = "durable-object", storage = "sqlite" }
`;

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    module: "nodenext",
    target: "es2024",
    lib: ["es2024"],
    types: ["@cloudflare/workers-types"],
    allowImportingTsExtensions: true,
  },
};

let folder: string;
/** A project that has the package installed. */
let project: string;
/** The paths of all files in the package. */
let files: string[];
let manifest: {
  readonly engines: { readonly node: string };
  readonly exports: Record<string, string | Record<string, string>>;
  readonly types: string;
} & Record<"dependencies" | "bin", Record<string, string>>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "weir-pack-"));
  const copy = join(folder, "copy");
  for (const name of COPIED) await cp(join(ROOT, name), join(copy, name), { recursive: true });
  await symlink(MODULES, join(copy, "node_modules"));
  await writeFile(join(copy, "examples/own-worker/.dev.vars"), "TOKEN=secret");
  await run("npm", ["run", "pack"], copy);

  project = join(folder, "project");
  const installed = join(project, "node_modules/edge-weir");
  await mkdir(installed, { recursive: true });
  const built = await readdir(join(copy, "dist"));
  const tarball = built.find((name) => name.startsWith("edge-weir-")) as string;
  await run("tar", ["-xzf", join(copy, "dist", tarball), "--strip-components=1"], installed);
  files = await readdir(installed, { recursive: true });

  manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  for (const name of [...Object.keys(manifest.dependencies), "@cloudflare/workers-types"]) {
    const link = join(project, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(MODULES, name), link);
  }
  // npm creates the same link when it installs the package.
  const command = join(project, "node_modules/.bin/weir");
  await mkdir(dirname(command));
  await symlink(join(installed, manifest.bin.weir as string), command);
  await chmod(command, 0o755);

  await writeFile(join(project, "package.json"), '{ "type": "module" }');
  await writeFile(join(project, "weir.config.ts"), CONFIG);
  await writeFile(join(project, "worker.ts"), WORKER);
  await writeFile(join(project, "llm.ts"), LLM);
  await writeFile(join(project, "wrangler.toml"), WRANGLER);
  await writeFile(join(project, "tsconfig.json"), JSON.stringify(TSCONFIG));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe("the packed package", () => {
  it("contains JavaScript, types, documentation and examples, but no tests, sources or secrets", () => {
    expect(files).toEqual(
      expect.arrayContaining(["README.md", "LICENSE", "CHANGELOG.md", "SKILL.md"]),
    );
    expect(files).not.toContain("CONTRIBUTING.md");
    expect(files).toContain("src/index.js");
    expect(files).toContain("src/index.d.ts");
    expect(files.filter((path) => /(^|\/)(test|dev|scripts|\..*)(\/|$)/.test(path))).toEqual([]);
    const sources = files.filter((path) => /(?<!\.d)\.ts$/.test(path));
    expect(sources.filter((path) => !path.startsWith("examples/"))).toEqual([]);
  });

  it("contains every file that its pages link to", () => {
    const pages = files.filter((path) => path.endsWith(".md"));
    expect(pages).toEqual(expect.arrayContaining(["README.md", "docs/programs.md"]));
    const missing = pages.flatMap((page) =>
      linksOf(readPage(page))
        .map((link) => join(dirname(page), link.split("#")[0] || basename(page)))
        .filter((path) => !files.includes(path)),
    );
    expect(missing).toEqual([]);
  });

  it("has a package.json that npm does not correct when it publishes the package", async () => {
    const copied = join(folder, "fixed/package.json");
    const text = await readFile(join(project, "node_modules/edge-weir/package.json"), "utf8");
    await mkdir(dirname(copied));
    await writeFile(copied, text);
    await run("npm", ["pkg", "fix"], dirname(copied));
    expect(await readFile(copied, "utf8")).toBe(text);
  });

  it("has a package.json whose paths exist, with the fields that the registry shows", () => {
    expect(Object.keys(manifest.exports)).toEqual([
      ".",
      "./config",
      "./admin",
      "./llm",
      "./package.json",
    ]);
    const exported = Object.values(manifest.exports).flatMap((each) =>
      typeof each === "string" ? [each] : Object.values(each),
    );
    const paths = [...exported, ...Object.values(manifest.bin), manifest.types];
    expect(paths.length).toBeGreaterThan(5);
    expect(paths.filter((path) => !files.includes(join(path)))).toEqual([]);
    const url = "https://github.com/edge-weir/edge-weir";
    expect(manifest).toMatchObject({
      name: "edge-weir",
      repository: { url: `git+${url}.git` },
      homepage: expect.stringContaining(url),
      bugs: { url: expect.stringContaining(url) },
      publishConfig: { access: "public", provenance: true },
      engines: { node: "^20.19.0 || >=22.12.0" },
    });
  });

  it("depends on what it needs to run, and not on tools for development", () => {
    expect(Object.keys(manifest.dependencies)).toContain("valibot");
    for (const field of [
      "optionalDependencies",
      "devDependencies",
      "scripts",
      "private",
      "cloudflare",
    ]) {
      expect(manifest).not.toHaveProperty(field);
    }
  });

  it("exports the configuration to Node", async () => {
    const script = `
      import { ConfigError, defineConfig } from "edge-weir/config";
      try {
        defineConfig({ rules: [{ name: "login", limt: 5, window: "1m" }] });
      } catch (error) {
        console.log(error instanceof ConfigError, error.message);
      }
    `;
    const output = await run("node", ["--input-type=module", "-e", script], project);
    expect(output).toContain("true Weir's configuration has");
  });

  it("exports the functions about language models to Node", async () => {
    const script = `
      import { llmReserve, llmUsage } from "edge-weir/llm";
      console.log(await llmUsage()(Response.json({ usage: { total_tokens: 21 } })), typeof llmReserve());
    `;
    const output = await run("node", ["--input-type=module", "-e", script], project);
    expect(output).toBe("21 function\n");
  });

  it("has types, which refuse only a value of another type, and the name of no rule", async () => {
    const mistyped = {
      "other-type.ts": CONFIG.replace('"1m"', "{}"),
      "no-rule.ts": WORKER.replace('rule: "login"', 'rule: "typo"'),
    };
    const files = Object.entries(mistyped);
    for (const [name, source] of files) await writeFile(join(project, name), source);
    const output: string = await run("tsc", ["-p", "."], project).catch(({ message }) => message);
    const errors = output.split("\n").filter((line) => line.includes("error TS"));
    const refused = new Set(errors.map((line) => line.split("(")[0]));
    expect(refused, output).toEqual(new Set(Object.keys(mistyped)));
  });

  it("has types with the comments that editors show", async () => {
    const types = await readFile(join(project, "node_modules/edge-weir/src/config/rule.d.ts"));
    expect(String(types)).toMatch(
      /The value that distinguishes clients.*@default "ip".*readonly key\?:/s,
    );
  });

  it("has a command that checks the project's rules", async () => {
    const output = await run(join(project, "node_modules/.bin/weir"), ["check"], project);
    expect(output).toContain("weir.config.ts is ok: 1 rule.");
    const help = await run(join(project, "node_modules/.bin/weir"), ["--help"], project);
    expect(help).toContain("Usage: npx weir ");
    const version = await run(join(project, "node_modules/.bin/weir"), ["--version"], project);
    expect(version).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it("has the commands for operators", async () => {
    const weir = join(project, "node_modules/.bin/weir");
    const help = await run(weir, ["override", "--help"], project);
    expect(help).toContain("override login --ip 203.0.113.7 --limit 500");
    // The command makes no call, because the token could be read on its way.
    await writeFile(join(project, ".dev.vars"), `WEIR_ADMIN_TOKEN=${"x".repeat(32)}`);
    const called = run(weir, ["top", "--at", "http://api.example.com"], project);
    await expect(called).rejects.toThrow("The token was not sent: over http to api.example.com");
    await rm(join(project, ".dev.vars"));
  });

  it("has a command that prints the required version on an older Node", async () => {
    const older =
      'data:text/javascript,Object.defineProperty(process.versions,"node",{value:"VERSION"})';
    const runOn = (version: string, argument = "check") => {
      const options = ["--import", older.replace("VERSION", version)];
      return run("node", [...options, "node_modules/.bin/weir", argument], project);
    };
    for (const version of ["8.17.0", "18.20.8", "20.18.3", "21.7.3", "22.0.0"]) {
      await expect(runOn(version)).rejects.toThrow(
        `\nweir needs Node 20.19, or 22.12 and newer, but this is Node ${version}. Install the LTS version`,
      );
    }
    for (const version of ["20.19.0", "22.12.0"]) {
      expect(await runOn(version, "--version")).toMatch(/^\d+\.\d+\.\d+\n$/);
    }
  });

  it("is bundled by wrangler into a Worker", async () => {
    const args = ["deploy", "--dry-run", "--outdir", "out"];
    expect(await run("wrangler", args, project)).toContain("env.COUNTERS (CounterObject)");
    const bundle = await readFile(join(project, "out/worker.js"), "utf8");
    expect(bundle).not.toContain("total_tokens");
  });

  it("is bundled with the functions about language models only if the Worker imports them", async () => {
    const { outputFiles } = await build({
      stdin: { contents: `${WORKER}\n${LLM}`, loader: "ts", resolveDir: project },
      bundle: true,
      write: false,
      format: "esm",
      external: ["cloudflare:*"],
    });
    expect(outputFiles[0]?.text).toContain("total_tokens");
  });
});

describe("npm pack in the root of the repository", () => {
  it("refuses, and names the command that packs the package", async () => {
    const packing = run("npm", ["pack", "--dry-run"], join(folder, "copy"));
    await expect(packing).rejects.toThrow("npm run pack");
  });
});

describe("npm install of the repository's git URL", () => {
  it("packs the same files as npm run pack", async () => {
    const clone = join(folder, "clone");
    for (const name of COPIED) {
      await cp(join(folder, "copy", name), join(clone, name), { recursive: true });
    }
    await symlink(MODULES, join(clone, "node_modules"));
    // The clone would build the same folder once more.
    const built = JSON.stringify(join(folder, "copy/dist/package"));
    await writeFile(
      join(clone, "scripts/build-package.ts"),
      `import { cpSync } from "node:fs";\ncpSync(${built}, "dist/package", { recursive: true });`,
    );
    const script = "scripts/package-from-git.mjs";
    await run("node", [script], clone);
    expect(await readdir(join(clone, "cli"))).toContain("weir.ts");
    // npm sets this variable in the clone that it makes.
    await run("node", [script], clone, { _PACOTE_NO_PREPARE_: "git+https://git.example" });
    const [packed] = JSON.parse(await run("npm", ["pack", "--dry-run", "--json"], clone));
    const paths = packed.files.map(({ path }: { path: string }) => path);
    const expected = files.filter((path) => paths.includes(path) || /\.\w+$/.test(path));
    expect(paths.sort()).toEqual([...expected].sort());
  });
});

/**
 * Runs a command and returns its output. Commands in node_modules/.bin take precedence over those
 * in PATH.
 */
async function run(
  command: string,
  args: string[],
  cwd: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  const PATH = [join(MODULES, ".bin"), process.env.PATH].join(delimiter);
  const log = { WRANGLER_LOG_PATH: join(folder, "logs"), WRANGLER_SEND_METRICS: "false" };
  const env = { ...process.env, ...log, ...variables, PATH };
  const running = promisify(execFile)(command, args, { cwd, env });
  const { stdout } = await running.catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}`);
  });
  return stdout;
}
