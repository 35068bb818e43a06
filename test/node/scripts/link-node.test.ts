import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const script = resolve("scripts/link-node.mjs");
let project: string;

function run(): void {
  execFileSync(process.execPath, [script], { cwd: project });
}

function link(): string {
  return readlinkSync(join(project, "node_modules/.bin/node"));
}

function writeManifest(manifest: object): void {
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
}

describe.runIf(process.platform !== "win32")("the project's own Node", () => {
  beforeEach(() => {
    project = mkdtempSync(join(tmpdir(), "weir-link-"));
    mkdirSync(join(project, "node_modules/.bin"), { recursive: true });
    mkdirSync(join(project, "node_modules/node-here/bin"), { recursive: true });
    writeFileSync(join(project, "node_modules/node-here/bin/node"), "");
    writeManifest({ optionalDependencies: { "node-elsewhere": "1.0.0", "node-here": "1.0.0" } });
  });

  afterEach(() => rmSync(project, { recursive: true }));

  it("is linked where npm scripts find it first, if npm has not linked it", () => {
    run();
    expect(link()).toBe("../node-here/bin/node");
  });

  it("keeps an existing link", () => {
    run();
    run();
    expect(link()).toBe("../node-here/bin/node");
  });

  it("is not linked on a platform that has no Node package, or without optional dependencies", () => {
    writeManifest({ optionalDependencies: { "node-elsewhere": "1.0.0" } });
    run();
    writeManifest({});
    run();
    expect(link).toThrow("ENOENT");
  });

  it("is linked by every npm install", () => {
    expect(JSON.parse(readFileSync("package.json", "utf8")).scripts.prepare).toMatch(
      /^node scripts\/link-node\.mjs /,
    );
  });
});
