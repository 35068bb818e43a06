import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STORES } from "../../../create/src/fields.ts";
import { type ProjectOptions, projectFiles, writeFiles } from "../../../create/src/new-project.ts";
import { CURRENT } from "../../../create/src/versions.ts";
import { callWeir } from "../cli/run-weir.ts";
import { buildPackage, emptyFolder, installPackage, linkPackages, runIn } from "./project.ts";

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

let built: Awaited<ReturnType<typeof emptyFolder>>;

beforeAll(async () => {
  built = await emptyFolder();
  await buildPackage(built.path);
});

afterAll(() => built[Symbol.asyncDispose]());

describe.each(["route", "custom-domain", "service"] as const)("a project for a %s", (template) => {
  let folder: Awaited<ReturnType<typeof emptyFolder>>;

  beforeAll(async () => {
    folder = await emptyFolder();
    const files = await projectFiles({ ...OPTIONS, template, store: "durable-object" });
    await writeFiles(folder.path, files);
    await linkPackages(folder.path);
    await installPackage(folder.path, built.path);
  });

  afterAll(() => folder[Symbol.asyncDispose]());

  it("passes weir check --strict, with no warning", async () => {
    const args = ["check", "--strict"];
    // One of the three projects starts the command as its users do.
    const { code, output } =
      template === "route"
        ? await runIn(folder.path, "weir", args)
        : await callWeir(args, folder.path).then(({ code, stdout, stderr }) => ({
            code,
            output: stdout + stderr,
          }));
    expect(output).toContain("weir.config.ts is ok: 2 rules.");
    expect(output).not.toContain("warning");
    expect(code).toBe(0);
  });

  // A project for a custom domain has the same code as a project for a route.
  if (template !== "custom-domain") {
    it("has no type errors", async () => {
      // The project sees Weir's sources here, which have JSX, and not the package's JavaScript.
      const jsx = ["--jsx", "react-jsx", "--jsxImportSource", "hono/jsx"];
      expect(await runIn(folder.path, "tsc", jsx)).toEqual({ code: 0, output: "" });
    });

    it("has tests that pass", async () => {
      const { code, output } = await runIn(folder.path, "vitest", ["run"]);
      expect(output).toMatch(/Tests.*3 passed/);
      expect(code).toBe(0);
    });
  }

  it("can be deployed", async () => {
    const args = ["deploy", "--dry-run", "--env", "production"];
    const { code, output } = await runIn(folder.path, "wrangler", args);
    expect(output).toContain("env.COUNTERS (CounterObject)");
    expect(output).toContain("env.WEIR_PREFIX");
    expect(output).not.toMatch(/warning/i);
    expect(code).toBe(0);
  });

  it("names only the user's hosts, origins and services", async () => {
    const toml = await readFile(join(folder.path, "wrangler.toml"), "utf8");
    expect(toml).not.toMatch(/example\.com|weir-starter|my-api/);
    expect(toml).toMatch(/^name = "limits"$/m);
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
