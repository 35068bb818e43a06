import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FIELDS } from "../../../create/src/fields.ts";
import { runningPackageManager } from "../../../create/src/package-manager.ts";
import { chooseTexts, type Flags, type Prompts } from "../../../create/src/run.ts";
import { CURRENT, HONO, NODE_20, toolchainFor } from "../../../create/src/versions.ts";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));

/** Answers the prompts from a list, and takes the default for all others. */
function answers(given: Readonly<Record<string, string>>) {
  const asked: string[] = [];
  const prompts: Prompts = {
    choice: async (_, __, initial) => initial,
    async text(question, initial) {
      const { key = "" } =
        FIELDS.find((field) => question === `What is ${field.description}?`) ?? {};
      asked.push(key);
      return given[key] ?? initial;
    },
  };
  return { asked, prompts };
}

const NO_FLAGS: Flags = { install: false };

describe("the prompts of a new project", () => {
  it.each([
    { template: "route", expected: ["name", "host", "zone"] },
    { template: "custom-domain", expected: ["name", "host", "origin"] },
    { template: "service", expected: ["name", "host", "service"] },
  ] as const)("ask only for the texts of a $template", async ({ template, expected }) => {
    const { asked, prompts } = answers({});
    await chooseTexts(template, NO_FLAGS, "/projects/limits", prompts);
    expect(asked).toEqual(expected);
  });

  it("do not include the texts that flags give", async () => {
    const { asked, prompts } = answers({});
    const flags = { ...NO_FLAGS, host: "api.shop.example" };
    const texts = await chooseTexts("route", flags, "/projects/limits", prompts);
    expect(asked).toEqual(["name", "zone"]);
    expect(texts.zone).toBe("shop.example");
  });

  it.each([
    { folder: "/projects/limits", name: "limits" },
    { folder: "/projects/My API_2", name: "my-api-2" },
    { folder: `/projects/${"x".repeat(80)}`, name: "x".repeat(50) },
    { folder: "/projects/——", name: "my-weir" },
    { folder: "/projects/ünï ☃", name: "uni" },
  ])("suggest the name $name for $folder", async ({ folder, name }) => {
    const texts = await chooseTexts("route", NO_FLAGS, folder, answers({}).prompts);
    expect(texts.name).toBe(name);
  });

  it("refuse a service with the name that the folder gives to Weir's own Worker", async () => {
    const flags = { ...NO_FLAGS, service: "limits" };
    await expect(
      chooseTexts("service", flags, "/projects/limits", answers({}).prompts),
    ).rejects.toThrow('--service "limits": This is the name of Weir\'s own Worker.');
  });

  it("suggest another service in a folder with the name of the suggestion", async () => {
    const texts = await chooseTexts("service", NO_FLAGS, "/my-api", answers({}).prompts);
    expect(texts).toMatchObject({ name: "my-api", service: "my-origin" });
  });

  it.each([
    { host: "api.shop.example", zone: "shop.example" },
    { host: "shop.example", zone: "shop.example" },
    { host: "api.shop.co.uk", zone: "shop.co.uk" },
    { host: "api.acme.io", zone: "acme.io" },
  ])("suggest the zone $zone for $host", async ({ host, zone }) => {
    const texts = await chooseTexts("route", NO_FLAGS, "/limits", answers({ host }).prompts);
    expect(texts.zone).toBe(zone);
  });
});

describe("the versions of a new project", () => {
  it("are those that Weir itself is tested with", () => {
    const tested = Object.keys(CURRENT.devDependencies).map((name) => [
      name,
      lock.packages[`node_modules/${name}`].version,
    ]);
    const written = Object.entries(CURRENT.devDependencies).map(([name, range]) => [
      name,
      range.replace(/^[~^]/, ""),
    ]);
    expect(written).toEqual(tested);
    const wrangler = readFileSync("wrangler.toml", "utf8");
    expect(wrangler).toContain(`compatibility_date = "${CURRENT.compatibilityDate}"`);
    expect(HONO).toBe(manifest.dependencies.hono);
  });

  it.each([
    { node: "20.19.0", tools: NODE_20 },
    { node: "22.12.0", tools: CURRENT },
    { node: "24.0.0", tools: CURRENT },
    { node: "26.0.0", tools: CURRENT },
  ])("fit Node $node", ({ node, tools }) => {
    expect(toolchainFor(node)).toBe(tools);
  });

  it("need the same Node as the starter and the package", () => {
    const starter = JSON.parse(readFileSync("create/package.json", "utf8"));
    expect(starter.engines).toEqual(manifest.engines);
  });

  it("are those that the repository installs, for the packages of the starter itself", () => {
    const starter = JSON.parse(readFileSync("create/package.json", "utf8"));
    expect(starter.version).toBe(manifest.version);
    for (const [name, version] of Object.entries(starter.dependencies)) {
      expect(manifest.dependencies[name] ?? manifest.devDependencies[name]).toBe(version);
    }
  });
});

describe("the package manager", () => {
  it.each([
    { userAgent: "pnpm/10.2.0 npm/? node/v24.1.0 linux x64", expected: "pnpm" },
    { userAgent: "npm/10.8.2 node/v20.19.6 linux x64 workspaces/false", expected: "npm" },
    { userAgent: undefined, expected: "npm" },
  ])("is $expected for the user agent $userAgent", ({ userAgent, expected }) => {
    expect(runningPackageManager(userAgent)).toBe(expected);
  });
});
