import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { addToHonoApp } from "../../../create/src/hono/add-to-app.ts";
import { isHonoApp } from "../../../create/src/hono/app-files.ts";
import { callWeir } from "../cli/run-weir.ts";
import { emptyFolder, linkPackages, ROOT, runIn } from "./project.ts";

const EDGE_WEIR = { spec: "^0.1.0" };

/** The files of a new Hono app for Cloudflare Workers, as `npm create hono` writes them. */
const FRESH: Readonly<Record<string, string>> = {
  "package.json": `{
  "name": "app",
  "type": "module",
  "scripts": {
    "dev": "wrangler dev",
    "deploy": "wrangler deploy --minify"
  },
  "dependencies": {
    "hono": "^4.13.3"
  },
  "devDependencies": {
    "wrangler": "^4.110.0"
  }
}
`,
  "tsconfig.json": `{
  "compilerOptions": {
    "target": "ESNext",
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "strict": true,
    "skipLibCheck": true,
    "lib": ["ESNext"],
    "jsx": "react-jsx",
    "jsxImportSource": "hono/jsx"
  },
}
`,
  "wrangler.jsonc": `{
  "$schema": "node_modules/wrangler/config-schema.json",
  "name": "app",
  "main": "src/index.ts",
  "compatibility_date": "2025-08-03"
  // "vars": {
  //   "MY_VAR": "my-variable"
  // }
}
`,
  "src/index.ts": `import { Hono } from 'hono'

const app = new Hono()

app.get('/', (c) => {
  return c.text('Hello Hono!')
})

export default app
`,
};

async function appIn(folder: string, files: Readonly<Record<string, string>> = FRESH) {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

describe("a fresh Hono app with Weir", () => {
  it("denies the sixth login of a minute, without another edit", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path);
    await addToHonoApp(folder.path, EDGE_WEIR);
    await linkPackages(folder.path);
    const script = `
      import { createTestHarness } from "wrangler";
      const server = createTestHarness({ workers: [{ configPath: "wrangler.jsonc" }] });
      await server.listen();
      for (let count = 0; count < 6; count++) {
        const response = await server.fetch("http://app.example/login", { method: "POST" });
        console.log(String(response.status));
      }
      await server.close();
    `;
    const { output } = await runIn(folder.path, "node", ["--input-type=module", "-e", script]);
    expect(output.match(/^\d{3}$/gm)).toEqual(["404", "404", "404", "404", "404", "429"]);
  });

  it("passes weir check --strict", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path);
    await addToHonoApp(folder.path, EDGE_WEIR);
    await linkPackages(folder.path);
    const { code, stdout, stderr } = await callWeir(["check", "--strict"], folder.path);
    expect(stdout + stderr).toContain("weir.config.ts is ok: 2 rules.");
    expect(code).toBe(0);
  });

  it("keeps the package if it is a file, once, and says how to change to the registry", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path);
    const path = "vendor/edge-weir-0.1.0.tgz";
    const edgeWeir = { spec: `file:${path}`, tarball: { path, content: Buffer.from("package") } };
    const { report, needsHand } = await addToHonoApp(folder.path, edgeWeir);
    expect(await readFile(join(folder.path, path), "utf8")).toBe("package");
    expect(report).toContain(`package.json\n  edge-weir: file:${path}\n`);
    expect(report).toContain("run npm install edge-weir@latest, and delete the file");
    expect(needsHand).toBe(false);
    await rm(join(folder.path, "vendor"), { recursive: true });
    await addToHonoApp(folder.path, edgeWeir);
    expect(await readdir(folder.path)).not.toContain("vendor");
  });

  it("does not change when the command runs again", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path);
    await addToHonoApp(folder.path, EDGE_WEIR);
    await appIn(folder.path, { "node_modules/edge-weir/package.json": "{}" });
    const before = await readAll(folder.path);
    const command = join(ROOT, "create/src/index.ts");
    const { code, output } = await runIn(folder.path, "node", [command]);
    expect(output).toBe("The files have everything that Weir needs already.\n");
    expect(code).toBe(0);
    expect(await readAll(folder.path)).toEqual(before);
  });

  it("prints npm install as the next command after a run with --no-install", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path);
    await addToHonoApp(folder.path, EDGE_WEIR);
    const command = join(ROOT, "create/src/index.ts");
    const { output } = await runIn(folder.path, "node", [command, "--no-install"]);
    expect(output).toContain("The package edge-weir is not installed in ");
    expect(output).toContain("  npm install\n  npm run dev\n");
  });

  it("keeps the byte order marks of its files", async () => {
    await using folder = await emptyFolder();
    const marked = Object.entries(FRESH).map(([path, text]) => [path, `\uFEFF${text}`]);
    await appIn(folder.path, Object.fromEntries(marked));
    expect(await isHonoApp(folder.path)).toBe(true);
    const { needsHand } = await addToHonoApp(folder.path, EDGE_WEIR);
    expect(needsHand).toBe(false);
    for (const path of ["package.json", "wrangler.jsonc", "src/index.ts"]) {
      const text = await readFile(join(folder.path, path), "utf8");
      expect(text.lastIndexOf("\uFEFF")).toBe(0);
    }
  });

  it("gets a weir.config.ts with the line ends of the app", async () => {
    await using folder = await emptyFolder();
    const source = (FRESH["src/index.ts"] as string).replaceAll("\n", "\r\n");
    await appIn(folder.path, { ...FRESH, "src/index.ts": source });
    await addToHonoApp(folder.path, EDGE_WEIR);
    const config = await readFile(join(folder.path, "weir.config.ts"), "utf8");
    expect(config.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
  });

  it("lists the remaining steps, and does not claim that the app has everything", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path, { ...FRESH, "src/index.ts": "export default create()\n" });
    await addToHonoApp(folder.path, EDGE_WEIR);
    const { report, needsHand } = await addToHonoApp(folder.path, EDGE_WEIR);
    expect(report).toMatch(/^Changed no file\.\n\nLeft to you, before Weir limits requests:\n/);
    expect(needsHand).toBe(true);
  });

  it("is reported file by file", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path);
    const { report, needsHand } = await addToHonoApp(folder.path, EDGE_WEIR);
    expect(report).toContain("package.json\n  edge-weir: ^0.1.0\n");
    expect(report).toContain("wrangler.jsonc\n  the binding WEIR_CONTROL");
    expect(report).toContain("\n  the binding COUNTERS");
    expect(report).toContain("src/index.ts\n  app.use(rateLimit(config))");
    expect(report).toContain('app.route("/", weirAdmin(config)) before app.use(rateLimit(config))');
    expect(report).toContain("weir.config.ts\n  new:");
    expect(needsHand).toBe(false);
  });

  it("keeps a weir.config.ts that exists", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path, { ...FRESH, "weir.config.ts": "// mine\n" });
    await addToHonoApp(folder.path, EDGE_WEIR);
    expect(await readFile(join(folder.path, "weir.config.ts"), "utf8")).toBe("// mine\n");
  });
});

describe("adding Weir to a Hono app", () => {
  it("says that an app without /login answers 404", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path);
    const command = [join(ROOT, "create/src/index.ts"), ".", "--no-install", "--template", "hono"];
    const { output } = await runIn(folder.path, process.execPath, command);
    expect(output).toContain("The sixth gets 429, the others 404 if the app has no /login:");
  });

  it.each([
    { name: "package.json", message: "has no package.json" },
    { name: "wrangler.jsonc", message: "has no wrangler.jsonc, wrangler.json or wrangler.toml" },
    { name: "src/index.ts", message: 'there is no file src/index.ts, which "main" names' },
  ])("is refused without $name", async ({ name, message }) => {
    await using folder = await emptyFolder();
    const { [name]: _, ...rest } = FRESH;
    await appIn(folder.path, rest);
    await expect(addToHonoApp(folder.path, EDGE_WEIR)).rejects.toThrow(message);
  });

  it("leaves a package.json to the user in which it cannot add the package", async () => {
    await using folder = await emptyFolder();
    const manifest = '{ "dependencies": {}, "dependencies": { "hono": "^4.13.0" } }';
    await appIn(folder.path, { ...FRESH, "package.json": manifest });
    const { report, needsHand } = await addToHonoApp(folder.path, EDGE_WEIR);
    expect(report).toContain('set dependencies.edge-weir: "^0.1.0"');
    expect(needsHand).toBe(true);
    expect(await readFile(join(folder.path, "package.json"), "utf8")).toBe(manifest);
  });

  it.each(["3.12.0", "^4.6.0"])(
    "is refused with hono %s, which Weir does not support",
    async (range) => {
      await using folder = await emptyFolder();
      const manifest = (FRESH["package.json"] as string).replace("^4.13.3", range);
      await appIn(folder.path, { ...FRESH, "package.json": manifest });
      await expect(addToHonoApp(folder.path, EDGE_WEIR)).rejects.toThrow(`asks for hono ${range}`);
      expect(await readFile(join(folder.path, "package.json"), "utf8")).toBe(manifest);
    },
  );

  it("is refused if the app has a Durable Object with the name of Weir's class", async () => {
    await using folder = await emptyFolder();
    const wrangler = JSON.stringify({
      main: "src/index.ts",
      durable_objects: { bindings: [{ name: "VISITS", class_name: "CounterObject" }] },
    });
    await appIn(folder.path, { ...FRESH, "wrangler.jsonc": wrangler });
    await expect(addToHonoApp(folder.path, EDGE_WEIR)).rejects.toThrow(
      "the binding VISITS exists already, for the class CounterObject",
    );
  });

  it("restores all files if one of them cannot be written", async () => {
    await using folder = await emptyFolder();
    await appIn(folder.path);
    // A folder stands where the configuration would be written.
    await mkdir(join(folder.path, "weir.config.ts"));
    const tarball = { path: "vendor/edge-weir.tgz", content: Buffer.from("package") };
    const edgeWeir = { spec: `file:${tarball.path}`, tarball };
    await expect(addToHonoApp(folder.path, edgeWeir)).rejects.toThrow("old contents");
    expect(existsSync(join(folder.path, tarball.path))).toBe(false);
    for (const [path, text] of Object.entries(FRESH)) {
      expect(await readFile(join(folder.path, path), "utf8")).toBe(text);
    }
  });

  it.each([
    { moduleResolution: "NodeNext", source: "", expected: "'../weir.config.js'" },
    { moduleResolution: "Bundler", source: "", expected: "'../weir.config'" },
  ])("imports $expected with $moduleResolution and $source", async (shape) => {
    await using folder = await emptyFolder();
    await appIn(folder.path, {
      ...FRESH,
      "tsconfig.json": JSON.stringify({ compilerOptions: shape }),
      "src/index.ts": `${shape.source}\n${FRESH["src/index.ts"]}`,
    });
    await addToHonoApp(folder.path, EDGE_WEIR);
    const entry = await readFile(join(folder.path, "src/index.ts"), "utf8");
    expect(entry).toContain(`import config from ${shape.expected}`);
  });

  it("works in an app with Vite, which has another port", async () => {
    await using folder = await emptyFolder();
    const manifest = (FRESH["package.json"] as string).replace(
      '"wrangler":',
      '"@cloudflare/vite-plugin": "^1.44.0",\n    "wrangler":',
    );
    await appIn(folder.path, { ...FRESH, "package.json": manifest });
    const { report, devUrl } = await addToHonoApp(folder.path, EDGE_WEIR);
    expect(report).toContain('run "npx weir check" before each deploy');
    expect(devUrl).toBe("http://localhost:5173");
  });
});

async function readAll(folder: string) {
  const paths = [...Object.keys(FRESH), "weir.config.ts"];
  return Promise.all(paths.map((path) => readFile(join(folder, path), "utf8")));
}
