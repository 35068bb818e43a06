import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readPage } from "../docs/pages.ts";

const example = readFileSync(".dev.vars.example", "utf8").trimEnd().split("\n");
const { cloudflare } = JSON.parse(readFileSync("package.json", "utf8"));
const described = Object.keys(cloudflare.bindings);

describe("the Deploy to Cloudflare button", () => {
  it("requires no secret, and suggests no value for production", () => {
    expect(example.filter((line) => line !== "" && !line.startsWith("#"))).toEqual([]);
    const values = example.flatMap((line) => /^# (\w+)=(.*)$/.exec(line)?.[2] ?? []);
    expect(values.length).toBeGreaterThan(2);
    expect(values.filter((value) => value !== "")).toEqual([]);
  });

  it("describes each binding that the repository's Worker can have", () => {
    const page = readPage("docs/configuration.md").lines;
    const documented = page.flatMap((line) => /^\| `([A-Z_]+)` \|/.exec(line)?.[1] ?? []);
    expect(described.sort()).toEqual([...new Set(documented.filter((name) => name !== ""))].sort());
    const named = example.flatMap((line) => /^# ([A-Z_]+)=/.exec(line)?.[1] ?? []);
    expect(described).toEqual(expect.arrayContaining(named));
  });

  it("finds .dev.vars.example in the repository, but no file with secrets", () => {
    const ignored = (name: string) => {
      try {
        execFileSync("git", ["check-ignore", "-q", name]);
        return true;
      } catch {
        return false;
      }
    };
    expect(ignored(".dev.vars.example")).toBe(false);
    expect(ignored(".dev.vars")).toBe(true);
    expect(ignored(".dev.vars.production")).toBe(true);
  });
});

describe("the workflow that publishes the packages", () => {
  const workflow = readFileSync(".github/workflows/publish.yml", "utf8");

  it("runs nothing but npm publish in the job that may ask for an identity", () => {
    const [build = "", publish = ""] = workflow.split(/^ {2}publish:$/m);
    expect(build).not.toMatch(/id-token: /);
    expect(publish).toMatch(/^ {4}needs: build$/m);
    const commands = [...publish.matchAll(/run: (.*)/g)].map(([, command]) => command);
    expect(commands).toEqual([
      "npm publish --ignore-scripts ./edge-weir-*.tgz",
      "npm publish --ignore-scripts ./create-edge-weir-*.tgz",
    ]);
    const actions = [...publish.matchAll(/uses: actions\/([\w-]+)@/g)].map(([, name]) => name);
    expect(actions).toEqual(["setup-node", "download-artifact"]);
  });

  it("pins each action to a commit, and has only the permissions that provenance needs", () => {
    const actions = [...workflow.matchAll(/uses: (.*)/g)].map(([, action]) => action);
    expect(actions.length).toBeGreaterThan(0);
    for (const action of actions) expect(action).toMatch(/^[\w/-]+@[0-9a-f]{40} # v\d/);
    expect(workflow).toMatch(/^permissions: \{\}$/m);
    expect(workflow.match(/\w[\w-]*: (write|read)\b/g)).toEqual([
      "contents: read",
      "id-token: write",
    ]);
  });
});
