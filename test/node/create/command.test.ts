import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../create/src/failure.ts";
import { run } from "../../../create/src/run.ts";
import { emptyFolder, ROOT, runIn } from "./project.ts";

const COMMAND = join(ROOT, "create/src/index.ts");

/** Runs the starter in a folder, without a terminal, and without an installation of packages. */
function create(folder: string, ...args: string[]) {
  return runIn(folder, process.execPath, [COMMAND, "--no-install", ...args]);
}

describe("create-edge-weir without a terminal", () => {
  it("writes a project with the defaults into a new folder, and prints the next commands", async () => {
    await using folder = await emptyFolder();
    const { code, output } = await create(folder.path, "limits");
    expect(code).toBe(0);
    expect(output).toContain("cd limits\n  npm install\n  npm run dev");
    const files = await readdir(join(folder.path, "limits"));
    expect(files).toEqual(
      expect.arrayContaining([".gitignore", "package.json", "src", "test", "weir.config.ts"]),
    );
    const manifest = await readJson(join(folder.path, "limits/package.json"));
    expect(manifest.name).toBe("limits");
    const { version } = await readJson(join(ROOT, "create/package.json"));
    expect(manifest.dependencies["edge-weir"]).toBe(`^${version}`);
  });

  it("writes into the current folder if it is empty, and otherwise into a folder my-weir", async () => {
    await using folder = await emptyFolder();
    await create(folder.path, "--yes");
    expect(await readdir(folder.path)).toContain("weir.config.ts");
    await using other = await emptyFolder();
    await writeFile(join(other.path, "notes.txt"), "mine");
    await create(other.path, "--yes");
    expect(await readdir(join(other.path, "my-weir"))).toContain("weir.config.ts");
  });

  it("takes all settings from flags", async () => {
    await using folder = await emptyFolder();
    await writeFile(join(folder.path, "edge-weir.tgz"), "package");
    const flags = ["--template", "custom-domain", "--name", "edge", "--host", "api.shop.example"];
    flags.push("--origin", "https://server.shop.example/v1/", "--store", "upstash");
    flags.push("--edge-weir", "./edge-weir.tgz", "--package-manager", "pnpm");
    const { code, output } = await create(folder.path, "limits", ...flags);
    expect(code, output).toBe(0);
    const toml = await readFile(join(folder.path, "limits/wrangler.toml"), "utf8");
    expect(toml).toContain('name = "edge"');
    expect(toml).toContain('ORIGIN_URL = "https://server.shop.example/v1"');
    const manifest = await readJson(join(folder.path, "limits/package.json"));
    expect(manifest.dependencies["edge-weir"]).toBe("file:vendor/edge-weir.tgz");
    const copy = join(folder.path, "limits/vendor/edge-weir.tgz");
    expect(await readFile(copy, "utf8")).toBe("package");
    expect(await readdir(join(folder.path, "limits"))).toContain("pnpm-workspace.yaml");
  });

  it.each([
    { args: ["--port", "1"], message: "unknown option '--port'" },
    { args: ["--template", "rout"], message: "Allowed choices are route, custom-domain" },
    { args: ["--store", "redis"], message: "Allowed choices are durable-object, upstash" },
    { args: ["limits", "more"], message: "too many arguments" },
    { args: ["--host", "localhost"], message: "This is not a host name" },
    { args: ["--template", "hono"], message: "has no package.json" },
    { args: ["--edge-weir", "./missing.tgz"], message: "there is no file" },
  ])("refuses $args, and writes nothing", async ({ args, message }) => {
    await using folder = await emptyFolder();
    const { code, output } = await create(folder.path, ...args);
    expect(output).toContain(message);
    expect(output).not.toMatch(/^ {4}at /m);
    expect(code).toBe(1);
    expect(await readdir(folder.path)).toEqual([]);
  });

  // These cases run in this process, because they are many.
  it.each([
    { args: ["--name", "My Worker"], message: '--name "My Worker": A Worker\'s name has' },
    { args: ["--name", "x".repeat(51)], message: "1 to 50 characters" },
    { args: ["--host", "https://api.example.com"], message: "no scheme, port or path" },
    { args: ["--host", "*.example.com"], message: "Add more routes in wrangler.toml" },
    { args: ["--host", "API.example.com"], message: "Write the host name as api.example.com." },
    { args: ["--host", "bücher.example"], message: "xn--bcher-kva.example" },
    { args: ["--host", "localhost"], message: "This is not a host name" },
    { args: ["--host", "192.0.2.1"], message: "This is not a host name" },
    {
      args: ["--host", "api.example.com", "--zone", "example.org"],
      message: "The host api.example.com is not in the zone example.org.",
    },
    {
      args: ["--template", "custom-domain", "--origin", "origin.example.com"],
      message: "not an http or https URL",
    },
    {
      args: ["--template", "custom-domain", "--origin", "https://user:key@origin.example.com"],
      message: "no user, password",
    },
    {
      args: ["--template=custom-domain", "--host=a.example.com", "--origin=https://a.example.com"],
      message: "requests would return to Weir",
    },
    {
      args: ["--template", "service", "--name", "api", "--service", "api"],
      message: "Weir's own Worker",
    },
    { args: ["--service", "my-api"], message: "--service has no effect with --template route" },
    { args: ["--name", "-", "--host", "x"], message: /^--name "-": .*\n--host "x": / },
  ])("refuses the values $args, and writes nothing", async ({ args, message }) => {
    await using folder = await emptyFolder();
    const refused = run([join(folder.path, "limits"), "--yes", "--no-install", ...args]);
    await expect(refused).rejects.toThrow(Failure);
    await expect(refused).rejects.toThrow(message);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it("refuses a folder with files, names them, and changes none", async () => {
    await using folder = await emptyFolder();
    await mkdir(join(folder.path, "limits/.git"), { recursive: true });
    await writeFile(join(folder.path, "limits/notes.txt"), "mine");
    const { code, output } = await create(folder.path, "limits");
    expect(output).toContain("is not empty: it contains notes.txt.");
    expect(code).toBe(1);
    expect(await readdir(join(folder.path, "limits"))).toEqual([".git", "notes.txt"]);
  });

  it("accepts a folder that contains only .git", async () => {
    await using folder = await emptyFolder();
    await mkdir(join(folder.path, ".git"));
    expect((await create(folder.path)).code).toBe(0);
    expect(await readdir(folder.path)).toContain("wrangler.toml");
  });

  it("refuses a path that is a file", async () => {
    await using folder = await emptyFolder();
    await writeFile(join(folder.path, "limits"), "");
    const { code, output } = await create(folder.path, "limits");
    expect(output).toContain("is a file, or is in a file. Name a folder.");
    expect(code).toBe(1);
  });

  it("refuses the folder of an app that it does not know, and gives the reason", async () => {
    await using folder = await emptyFolder();
    await writeFile(join(folder.path, "package.json"), '{ "dependencies": { "hono": "^4.13.0" } }');
    const { code, output } = await create(folder.path);
    expect(output).toContain("has no wrangler.jsonc, wrangler.json or wrangler.toml");
    expect(output).toContain("name its folder: npm create edge-weir@latest my-weir");
    expect(code).toBe(1);
    expect(await readdir(folder.path)).toEqual(["package.json"]);
  });

  it("prints one line for a folder that it cannot create", async () => {
    await using folder = await emptyFolder();
    await symlink("nowhere", join(folder.path, "limits"));
    const { code, output } = await create(folder.path, "limits");
    expect(output).toMatch(/^.*limits.* a link without a target.*Nothing was written\.\n$/);
    expect(code).toBe(1);
  });

  it("prints how to go on after Ctrl-C during the installation", async () => {
    await using folder = await emptyFolder();
    // This package manager sends the signal of Ctrl-C to the starter and to itself, as a terminal does.
    const npm = join(folder.path, "bin/npm");
    await mkdir(join(folder.path, "bin"));
    await writeFile(npm, "#!/bin/sh\nkill -INT $PPID $$\nexec sleep 5\n", { mode: 0o755 });
    const script = `PATH=${join(folder.path, "bin")}:$PATH exec ${process.execPath} ${COMMAND} limits`;
    const { code, output } = await runIn(folder.path, "sh", ["-c", script]);
    expect(output).toMatch(
      /npm install failed, or was interrupted.*: run npm install in .*limits to go on\./,
    );
    expect(code).toBe(1);
  });

  it.each(["18.20.0", "21.7.3", "22.0.0"])(
    "prints the required versions on Node %s",
    async (version) => {
      const script = `
      Object.defineProperty(process.versions, "node", { value: "${version}" });
      await import(${JSON.stringify(COMMAND)});
    `;
      const { code, output } = await runIn(ROOT, "node", ["--input-type=module", "-e", script]);
      expect(output).toBe(
        `create-edge-weir needs Node 20.19, or 22.12 and newer, but this is Node ${version}. Install the LTS version from https://nodejs.org.\n`,
      );
      expect(code).toBe(1);
    },
  );

  it("prints its flags with --help", async () => {
    const { code, output } = await create(ROOT, "--help");
    expect(output).toContain("--template <template>");
    expect(output).toContain("--origin <url>");
    expect(code).toBe(0);
  });
});

async function readJson(path: string) {
  return JSON.parse(await readFile(path, "utf8"));
}
