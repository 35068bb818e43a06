import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { parseSettings } from "../../../create/src/hono/app-files.ts";
import { editWrangler } from "../../../create/src/hono/settings.ts";

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

function toml(text: string) {
  const edit = editWrangler({ path: "wrangler.toml", text });
  return { ...edit, settings: JSON.parse(JSON.stringify(parse(edit.text))) };
}

function jsonc(text: string) {
  const edit = editWrangler({ path: "wrangler.jsonc", text });
  return {
    ...edit,
    settings: JSON.parse(
      JSON.stringify(parseSettings({ path: "wrangler.jsonc", text: edit.text })),
    ),
  };
}

describe.each([
  { format: "TOML", edit: toml, text: TOML },
  { format: "JSON with comments", edit: jsonc, text: JSONC },
])("wrangler's configuration in $format", ({ edit, text }) => {
  it("gets the objects, their migration and logs", () => {
    const { settings, byHand } = edit(text);
    expect(settings).toEqual({
      name: "app",
      main: "src/index.ts",
      compatibility_date: "2025-08-03",
      durable_objects: { bindings: [CONTROL, BINDING] },
      migrations: [{ tag: "weir-v1", new_sqlite_classes: ["ControlObject", "CounterObject"] }],
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
});

describe("objects, migrations and commands of the app's own", () => {
  const OWN = { name: "ROOMS", class_name: "Room" };

  it("stay in TOML with tables", () => {
    const lines = '[[durable_objects.bindings]]\nname = "ROOMS"\nclass_name = "Room"\n';
    const { settings, byHand, text } = toml(TOML + lines);
    expect(settings.durable_objects.bindings).toEqual([OWN, CONTROL, BINDING]);
    expect(byHand).toEqual([]);
    expect(text).toContain("# its name");
  });

  it.each([
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
  ])("are left to the user in TOML with $notation, with the items to add", ({ lines }) => {
    const { settings, byHand, text } = toml(TOML + lines);
    expect(settings.durable_objects.bindings).toEqual([OWN]);
    expect(byHand.join("\n")).toContain(
      'add to the list durable_objects.bindings: { name = "COUNTERS", class_name = "CounterObject" }',
    );
    expect(settings.migrations).toHaveLength(1);
    expect(text.startsWith(TOML + lines)).toBe(true);
  });

  it("stay in JSON", () => {
    const text = JSONC.replace(
      '  // "vars"',
      `  , "durable_objects": { "bindings": [${JSON.stringify(OWN)}] } // rooms\n  // "vars"`,
    );
    const { settings, text: after } = jsonc(text);
    expect(settings.durable_objects.bindings).toEqual([OWN, CONTROL, BINDING]);
    expect(after).toContain("// rooms");
  });

  it("are followed by Weir's migration", () => {
    const own = '[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Room"]\n';
    expect(toml(TOML + own).settings.migrations).toEqual([
      { tag: "v1", new_sqlite_classes: ["Room"] },
      { tag: "weir-v2", new_sqlite_classes: ["ControlObject", "CounterObject"] },
    ]);
  });

  it.each([
    {
      format: "TOML",
      edit: toml,
      text: `${TOML}[exports]\nRoom = { type = "durable-object", storage = "sqlite" }\n`,
    },
    {
      format: "JSON",
      edit: jsonc,
      text: JSONC.replace(
        '  // "vars"',
        '  , "exports": { "Room": { "type": "durable-object", "storage": "sqlite" } }\n  // "vars"',
      ),
    },
  ])(
    "that are in exports get Weir's classes there, without a migration: $format",
    ({ edit, text }) => {
      const { settings, text: once } = edit(text);
      const declared = { type: "durable-object", storage: "sqlite" };
      expect(settings.exports).toEqual({
        Room: declared,
        ControlObject: declared,
        CounterObject: declared,
      });
      expect(settings).not.toHaveProperty("migrations");
      expect(edit(once)).toMatchObject({ text: once, changes: [], byHand: [] });
    },
  );

  it("get the binding in each environment, because environments do not inherit bindings", () => {
    const environments = '[env.staging]\nname = "s"\n[env."pro.d"]\nvars = { A = "1" }\n';
    const { settings } = toml(TOML + environments);
    expect(settings.env.staging.durable_objects).toEqual({ bindings: [CONTROL, BINDING] });
    expect(settings.env["pro.d"].durable_objects).toEqual({ bindings: [CONTROL, BINDING] });
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
  ])("are left to the user in an environment that is an inline table: $notation", ({ lines }) => {
    const { text, byHand } = toml(TOML + lines);
    expect(text.startsWith(TOML + lines)).toBe(true);
    expect(byHand.join("\n")).toContain("add to the list env.staging.durable_objects.bindings: {");
  });

  it("keep a build command, and the user gets advice", () => {
    const { settings, byHand, advice } = toml(
      `workers_dev = false\n${TOML}[build]\ncommand = "npm run generate"\n`,
    );
    expect(settings.build).toEqual({ command: "npm run generate" });
    expect(byHand).toEqual([]);
    expect(advice.join()).toContain('run "npx weir check" before each deploy');
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
