import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { editWrangler } from "../../../create/src/hono/add-to-app.ts";
import type { ClassNames } from "../../../create/src/hono/entry.ts";
import { parseJson } from "../../../create/src/hono/hono-app.ts";

const TOML = `# The app.
name = "app" # its name
main = "src/index.ts"
compatibility_date = "2025-08-03"
`;

const JSONC = `{
  // The app.
  "name": "app",
  "main": "src/index.ts",
  "compatibility_date": "2025-08-03"
  // "vars": {}
}
`;

const BINDING = { name: "COUNTERS", class_name: "CounterObject" };
const CONTROL = { name: "WEIR_CONTROL", class_name: "ControlObject" };
const CLASSES: ClassNames = { counter: "CounterObject", control: "ControlObject" };

function toml(text: string, hasBuild = true, classes = CLASSES) {
  const edit = editWrangler({ path: "wrangler.toml", text }, hasBuild, classes);
  return { ...edit, settings: JSON.parse(JSON.stringify(parse(edit.text))) };
}

function jsonc(text: string, hasBuild = true, classes = CLASSES) {
  const edit = editWrangler({ path: "wrangler.jsonc", text }, hasBuild, classes);
  return { ...edit, settings: JSON.parse(JSON.stringify(parseJson(edit.text))) };
}

describe.each([
  { format: "TOML", edit: toml, text: TOML },
  { format: "JSON with comments", edit: jsonc, text: JSONC },
])("wrangler's configuration in $format", ({ edit, text }) => {
  it("gets the objects, their migration, the check and logs", () => {
    const { settings, byHand } = edit(text);
    expect(settings).toEqual({
      name: "app",
      main: "src/index.ts",
      compatibility_date: "2025-08-03",
      durable_objects: { bindings: [BINDING, CONTROL] },
      migrations: [{ tag: "weir-v1", new_sqlite_classes: ["CounterObject", "ControlObject"] }],
      build: {
        command: "npx weir check",
        watch_dir: ["src", "weir.config.ts", "no-such-folder/weir.config.ts"],
      },
      observability: { enabled: true, head_sampling_rate: 1 },
    });
    expect(byHand).toEqual([]);
  });

  it("keeps every line, except that it may add a comma", () => {
    const after = edit(text).text.split("\n");
    const lost = text.split("\n").filter((line) => !after.some((each) => each.startsWith(line)));
    expect(lost).toEqual([]);
  });

  it("does not change the second time", () => {
    const once = edit(text).text;
    expect(edit(once)).toMatchObject({ text: once, changes: [], byHand: [] });
  });

  it("keeps the line ends of Windows", () => {
    const windows = edit(text.replaceAll("\n", "\r\n")).text;
    expect(windows.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
  });

  it("gets no build command with Vite, which does not run it", () => {
    expect(edit(text, false).settings).not.toHaveProperty("build");
  });
});

describe("objects, migrations and commands of the app's own", () => {
  const OWN = { name: "ROOMS", class_name: "Room" };

  it.each([
    {
      notation: "tables",
      lines: '[[durable_objects.bindings]]\nname = "ROOMS"\nclass_name = "Room"\n',
    },
    {
      notation: "a list on one line",
      lines: 'durable_objects.bindings = [{ name = "ROOMS", class_name = "Room" }]\n',
    },
    {
      notation: "a list on several lines",
      lines:
        '[durable_objects]\nbindings = [\n  { name = "ROOMS", class_name = "Room" }, # rooms ]\n]\n',
    },
    {
      notation: "an inline table",
      lines: 'durable_objects = { bindings = [{ name = "ROOMS", class_name = "Room" }] }\n',
    },
  ])("stay in TOML with $notation", ({ lines }) => {
    const { settings, byHand, text } = toml(TOML + lines);
    expect(settings.durable_objects.bindings).toEqual([OWN, BINDING, CONTROL]);
    expect(byHand).toEqual([]);
    expect(text).toContain("# its name");
  });

  it("stay in JSON", () => {
    const text = JSONC.replace(
      '  // "vars"',
      `  , "durable_objects": { "bindings": [${JSON.stringify(OWN)}] } // rooms\n  // "vars"`,
    );
    const { settings, text: after } = jsonc(text);
    expect(settings.durable_objects.bindings).toEqual([OWN, BINDING, CONTROL]);
    expect(after).toContain("// rooms");
  });

  it("are followed by Weir's migration", () => {
    const own = '[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Room"]\n';
    expect(toml(TOML + own).settings.migrations).toEqual([
      { tag: "v1", new_sqlite_classes: ["Room"] },
      { tag: "weir-v1", new_sqlite_classes: ["CounterObject", "ControlObject"] },
    ]);
  });

  it("with an older Weir get the objects of the statistics, and a second migration", () => {
    const older = toml(TOML, true, { ...CLASSES, control: undefined });
    expect(older.settings.durable_objects.bindings).toEqual([BINDING]);
    const { settings, changes } = toml(older.text);
    expect(settings.durable_objects.bindings).toEqual([BINDING, CONTROL]);
    expect(settings.migrations).toEqual([
      { tag: "weir-v1", new_sqlite_classes: ["CounterObject"] },
      { tag: "weir-v2", new_sqlite_classes: ["ControlObject"] },
    ]);
    expect(changes).toEqual([
      "the binding WEIR_CONTROL of the Durable Objects with the statistics and the live overrides",
      "the migration that creates ControlObject",
    ]);
  });

  it("get the binding in each environment, because environments do not inherit bindings", () => {
    const environments = '[env.staging]\nname = "s"\n[env."pro.d"]\nvars = { A = "1" }\n';
    const { settings } = toml(TOML + environments);
    expect(settings.env.staging.durable_objects).toEqual({ bindings: [BINDING, CONTROL] });
    expect(settings.env["pro.d"].durable_objects).toEqual({ bindings: [BINDING, CONTROL] });
    expect(settings.env.staging).not.toHaveProperty("migrations");
  });

  it.each([
    { notation: "a line", lines: '[env]\nstaging = { name = "s" }\n' },
    { notation: "nested", lines: 'env = { staging = { name = "s", vars = { A = "}" } } }\n' },
    { notation: "empty", lines: "[env]\nstaging = {}\n" },
    {
      notation: "with objects",
      lines: "[env]\nstaging = { durable_objects = { bindings = [] } }\n",
    },
  ])("get the binding in an environment that is an inline table: $notation", ({ lines }) => {
    const { settings, byHand } = toml(TOML + lines);
    expect(settings.env.staging.durable_objects).toEqual({ bindings: [BINDING, CONTROL] });
    expect(byHand).toEqual([]);
  });

  it("get the classes under the names that the app exports", () => {
    const names = { counter: "WeirCounterObject", control: "Statistics" };
    const { settings } = toml(TOML, true, names);
    expect(settings.durable_objects.bindings).toEqual([
      { name: "COUNTERS", class_name: "WeirCounterObject" },
      { name: "WEIR_CONTROL", class_name: "Statistics" },
    ]);
    expect(settings.migrations[0].new_sqlite_classes).toEqual(["WeirCounterObject", "Statistics"]);
  });

  it.each([
    ["", true],
    ["workers_dev = true\nroutes = ['a.example/*']\n", true],
    ["route = 'a.example/*'\n", false],
    ["workers_dev = false\n", false],
  ])("name workers.dev as advice if the app answers there: %j", (lines, isNamed) => {
    expect(/workers-dev/.test(toml(lines + TOML).advice.join())).toBe(isNamed);
  });

  it("keep a build command, and the user gets advice", () => {
    const { settings, byHand, advice } = toml(
      `workers_dev = false\n${TOML}[build]\ncommand = "npm run generate"\n`,
    );
    expect(settings.build).toEqual({ command: "npm run generate" });
    expect(byHand).toEqual([]);
    expect(advice).toEqual([
      'wrangler.toml: build.command: put "npx weir check && " before your own command',
    ]);
  });

  it("keep hot reload if the entry is not in a folder", () => {
    const { settings, advice } = toml(TOML.replace("src/index.ts", "index.ts"));
    expect(settings).not.toHaveProperty("build");
    expect(advice.join()).toContain("run npx weir check before each deploy");
  });

  it("keep their logs", () => {
    const { settings } = toml(`${TOML}[observability]\nenabled = false\n`);
    expect(settings.observability).toEqual({ enabled: false });
  });
});

describe("a configuration that cannot be extended", () => {
  it.each(["COUNTERS", "WEIR_CONTROL"])(
    "is refused if its binding %s has another class",
    (name) => {
      const own = `[[durable_objects.bindings]]\nname = "${name}"\nclass_name = "Mine"\n`;
      expect(() => toml(TOML + own)).toThrow(`${name} exists already, for the class Mine`);
    },
  );

  it("is refused with its file and line if it cannot be parsed", () => {
    expect(() => toml(`${TOML}x = = 1\n`)).toThrow(/wrangler\.toml cannot be read: .*line|5/s);
    expect(() => jsonc('{ "name": }')).toThrow("wrangler.jsonc cannot be read: line 1");
  });
});
