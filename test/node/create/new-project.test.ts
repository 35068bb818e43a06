import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "smol-toml";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { unstable_readConfig } from "wrangler";
import { STORES } from "../../../create/src/fields.ts";
import { type ProjectOptions, projectFiles, writeFiles } from "../../../create/src/new-project.ts";
import { CURRENT, NODE_20, type Toolchain } from "../../../create/src/versions.ts";
import { callWeir } from "../cli/run-weir.ts";
import { buildPackage, emptyFolder, linkPackages, runIn } from "./project.ts";

const OPTIONS: Omit<ProjectOptions, "template" | "store"> = {
  texts: {
    name: "limits",
    host: "api.shop.example",
    zone: "shop.example",
    origin: "https://server.shop.example/v1",
    service: "shop-api",
  },
  edgeWeir: "^0.1.0",
  toolchain: CURRENT,
  packageManager: "npm",
};

const TEMPLATES = ["route", "custom-domain", "service"] as const;
/** A project for a custom domain has the same code as a project for a route. */
const WITH_OWN_CODE = ["route", "service"] as const;

describe("a new project", () => {
  /** A folder with the packages, and with one project for each template. */
  let folder: Awaited<ReturnType<typeof emptyFolder>>;
  const pathOf = (template: ProjectOptions["template"]) => join(folder.path, template);

  beforeAll(async () => {
    folder = await emptyFolder();
    await linkPackages(folder.path);
    await rm(join(folder.path, "node_modules/edge-weir"));
    await buildPackage(join(folder.path, "node_modules/edge-weir"));
    for (const template of TEMPLATES) {
      // vitest refuses projects of one name.
      const texts = { ...OPTIONS.texts, name: `limits-${template}` };
      const files = await projectFiles({ ...OPTIONS, texts, template, store: "durable-object" });
      await writeFiles(pathOf(template), files);
    }
  });

  afterAll(() => folder[Symbol.asyncDispose]());

  it.each(TEMPLATES)("passes weir check --strict, with no warning: %s", async (template) => {
    const { code, stdout, stderr } = await callWeir(["check", "--strict"], pathOf(template));
    expect(stdout).toContain("weir.config.ts is ok: 2 rules.");
    expect(stdout + stderr).not.toContain("warning");
    expect(code).toBe(0);
  });

  it("has no type errors", async () => {
    const args = ["--build", ...WITH_OWN_CODE];
    expect(await runIn(folder.path, "tsc", args)).toEqual({ code: 0, output: "" });
  });

  it("has tests that pass", async () => {
    const config = `export default { test: { projects: ${JSON.stringify(WITH_OWN_CODE)} } };`;
    await writeFile(join(folder.path, "vitest.config.mjs"), config);
    const { code, output } = await runIn(folder.path, "vitest", ["run"]);
    expect(output).toMatch(/Test Files.*2 passed.*Tests.*6 passed/s);
    expect(code).toBe(0);
  });

  it("can be deployed", async () => {
    const args = ["deploy", "--dry-run", "--env", "production"];
    const { code, output } = await runIn(pathOf("route"), "wrangler", args);
    // The command of [build], as its users start it.
    expect(output).toContain("weir.config.ts is ok: 2 rules.");
    expect(output).toContain("env.COUNTERS (CounterObject)");
    expect(output).toContain("env.WEIR_PREFIX");
    expect(output).not.toMatch(/warning/i);
    expect(code).toBe(0);
  });

  it.each(TEMPLATES)("has a wrangler.toml without a warning: %s", async (template) => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const config = join(pathOf(template), "wrangler.toml");
    const { vars, durable_objects } = unstable_readConfig({ config, env: "production" });
    expect(warn.mock.calls).toEqual([]);
    warn.mockRestore();
    expect(vars).toHaveProperty("WEIR_PREFIX");
    expect(durable_objects.bindings).toContainEqual({
      name: "COUNTERS",
      class_name: "CounterObject",
    });
  });

  it.each(TEMPLATES)("names only the user's hosts, origins and services: %s", async (template) => {
    const toml = await readFile(join(pathOf(template), "wrangler.toml"), "utf8");
    expect(toml).not.toMatch(/example\.com|weir-starter|my-api/);
    expect(toml).toContain(`\nname = "limits-${template}"\n`);
    expect(toml).toContain('pattern = "api.shop.example');
    expect(toml).toContain('pattern = "staging-api.shop.example');
  });
});

describe.each(STORES)("a project with the store %s", (store) => {
  it("requires the secrets of its store, and no others", async () => {
    const files = await projectFiles({ ...OPTIONS, template: "route", store });
    const toml = files.get("wrangler.toml") as string;
    const required = toml.match(/^required = .*$/gm) ?? [];
    expect(required).toHaveLength(store === "upstash" ? 2 : 0);
  });
});

describe.each(TEMPLATES)("the classes of a project: %s", (template) => {
  const settingsFor = async (toolchain: Toolchain) => {
    const files = await projectFiles({ ...OPTIONS, template, store: "durable-object", toolchain });
    return parse(files.get("wrangler.toml") as string);
  };

  it("are in exports", async () => {
    const declared = { type: "durable-object", storage: "sqlite" };
    const { exports, migrations } = await settingsFor(CURRENT);
    expect(exports).toEqual({ CounterObject: declared, ControlObject: declared });
    expect(migrations).toBeUndefined();
  });

  it("are in a migration on Node 20, whose wrangler does not read exports", async () => {
    const { exports, migrations } = await settingsFor(NODE_20);
    expect(migrations).toEqual([
      { tag: "v1", new_sqlite_classes: ["CounterObject", "ControlObject"] },
    ]);
    expect(exports).toBeUndefined();
  });
});

describe("a project that cannot be written", () => {
  it("leaves no file and no folder", async () => {
    await using folder = await emptyFolder();
    const target = join(folder.path, "limits");
    const tooLong = `src/${"x".repeat(300)}`;
    const files = new Map([
      ["a/b.txt", "b"],
      [tooLong, "c"],
    ]);
    await expect(writeFiles(target, files)).rejects.toThrow(
      "cannot be read or written: the name is too long (ENAMETOOLONG). Nothing was written.",
    );
    expect(await readdir(folder.path)).toEqual([]);
  });

  it("removes the incomplete file", async () => {
    await using folder = await emptyFolder();
    // The write fails after the file has been created, as on a full disk.
    const files = new Map([
      ["a.txt", "a"],
      ["b.txt", Symbol() as unknown as string],
    ]);
    await expect(writeFiles(folder.path, files)).rejects.toThrow();
    expect(await readdir(folder.path)).toEqual([]);
  });

  it("keeps a file that appears in the meantime", async () => {
    await using folder = await emptyFolder();
    await writeFile(join(folder.path, "b.txt"), "mine");
    const files = new Map([
      ["a.txt", "a"],
      ["b.txt", "b"],
    ]);
    await expect(writeFiles(folder.path, files)).rejects.toThrow("has this name");
    expect(await readdir(folder.path)).toEqual(["b.txt"]);
    expect(await readFile(join(folder.path, "b.txt"), "utf8")).toBe("mine");
  });
});

describe("npm run dev", () => {
  it("prints the port that it is given", async () => {
    await using folder = await emptyFolder();
    const files = await projectFiles({ ...OPTIONS, template: "route", store: "durable-object" });
    await mkdir(join(folder.path, "node_modules/wrangler/bin"), { recursive: true });
    await writeFile(join(folder.path, "node_modules/wrangler/package.json"), "{}");
    await writeFile(join(folder.path, "node_modules/wrangler/bin/wrangler.js"), "");
    await writeFile(join(folder.path, "start.mjs"), files.get("dev/start.mjs") as string);
    const { output } = await runIn(folder.path, "node", ["start.mjs", "--port", "9020"]);
    expect(output).toContain("-X POST http://localhost:9020/login");
  });
});
