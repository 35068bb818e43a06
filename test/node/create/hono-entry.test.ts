import { describe, expect, it } from "vitest";
import { editEntry } from "../../../create/src/hono/entry.ts";

/** Adds the middleware to a file, and returns the added and the removed lines. */
function edited(text: string, path = "src/index.ts") {
  const edit = editEntry({ path, text }, "../weir.config");
  const before = text.split(/\r?\n/);
  const after = edit.text.split(/\r?\n/);
  return {
    ...edit,
    added: after.filter((line) => line !== "" && !before.includes(line)),
    removed: before.filter((line) => !after.includes(line)),
  };
}

const APP = `import { Hono } from 'hono'

const app = new Hono()

app.get('/', (c) => c.text('Hello'))

export default app
`;

describe("the middleware in a Hono app", () => {
  it("comes directly after the app, in the quotes of the file", () => {
    expect(editEntry({ path: "src/index.ts", text: APP }, "../weir.config").text).toBe(
      `import { Hono } from 'hono'

import { rateLimit } from 'edge-weir';
import config from '../weir.config';
export { ControlObject, CounterObject } from 'edge-weir';

const app = new Hono()

app.use(rateLimit(config));

app.get('/', (c) => c.text('Hello'))

export default app
`,
    );
  });

  it.each([
    { name: "bindings", init: "new Hono<{ Bindings: CloudflareBindings }>()" },
    { name: "options", init: "new Hono({ strict: false })" },
  ])("fits an app with $name", ({ init }) => {
    const { added, removed, byHand } = edited(APP.replace("new Hono()", init));
    expect(added).toContain("app.use(rateLimit(config));");
    expect(removed).toEqual([]);
    expect(byHand).toEqual([]);
  });

  it("uses semicolons and double quotes if the file uses them", () => {
    const text = APP.replaceAll("'", '"').replace(/(?<=["()]|app)$/gm, ";");
    expect(edited(text).added).toEqual([
      'import { rateLimit } from "edge-weir";',
      'import config from "../weir.config";',
      'export { ControlObject, CounterObject } from "edge-weir";',
      "app.use(rateLimit(config));",
    ]);
  });

  it("keeps the line ends of Windows", () => {
    const { text } = edited(APP.replaceAll("\n", "\r\n"));
    expect(text.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
  });

  it("keeps a comment at the end of the app's line", () => {
    const { added, removed } = edited(APP.replace("new Hono()", "new Hono() // the API"));
    expect(added).toContain("app.use(rateLimit(config));");
    expect(removed).toEqual([]);
  });

  it("comes before the routes of a chain", () => {
    const { text } = edited(APP.replace("new Hono()", "new Hono().get('/a', (c) => c.text('a'))"));
    expect(text).toContain("new Hono().use(rateLimit(config)).get('/a'");
  });

  it.each([
    { name: "a handler", exported: "export default { fetch: app.fetch, scheduled() {} }" },
    {
      name: "a typed handler",
      exported: "export default { fetch: app.fetch } satisfies ExportedHandler",
    },
  ])("is also added to an app that is exported as $name", ({ exported }) => {
    expect(edited(APP.replace("export default app", exported)).added).toContain(
      "app.use(rateLimit(config));",
    );
  });

  it("is also added to files with JSX and to JavaScript files", () => {
    const jsx = APP.replace("c.text('Hello')", "c.html(<h1>Hello</h1>)");
    expect(edited(jsx, "src/index.tsx").byHand).toEqual([]);
    expect(edited(APP, "src/index.js").byHand).toEqual([]);
  });

  it("avoids the names that the file uses", () => {
    const text = `${APP}\nconst config = 1, rateLimit = 2\n`;
    expect(edited(text).added).toEqual([
      "import { rateLimit as weirRateLimit } from 'edge-weir';",
      "import weirConfig from '../weir.config';",
      "export { ControlObject, CounterObject } from 'edge-weir';",
      "app.use(weirRateLimit(weirConfig));",
    ]);
  });

  it("is also added if the class Hono is imported under another name", () => {
    const text = APP.replace("{ Hono }", "{ Hono as App }").replace("new Hono", "new App");
    expect(edited(text).added).toContain("app.use(rateLimit(config));");
  });

  it.each([
    { name: "a parenthesis", next: ";(async () => {})()" },
    { name: "a bracket", next: ";[1].forEach(() => {})" },
    { name: "a template", next: ";`x`.trim()" },
    { name: "a comment and a parenthesis", next: "// first\n;(async () => {})()" },
  ])("is a statement of its own before a line that begins with $name", ({ next }) => {
    const { text, byHand } = edited(APP.replace("new Hono()", `new Hono()\n\n${next}`));
    expect(byHand).toEqual([]);
    const [before, after] = text.split("app.use(rateLimit(config));");
    expect(before).toMatch(/const app = new Hono\(\)\s+(\/\/ first\s+)?;?$/);
    expect(after).toContain(next.replace(/^(\/\/ first\n)?;/, ""));
  });

  it("gets a semicolon if the same line continues with a parenthesis", () => {
    const { text } = edited(APP.replace("new Hono()", "new Hono();(async () => {})()"));
    expect(text).toContain("app.use(rateLimit(config));(async () => {})()");
  });

  it("separates imports from a next line that begins with a parenthesis", () => {
    const { text } = edited(APP.replace("'hono'\n", "'hono'\n;(async () => {})()\n"));
    expect(text).toContain("} from 'hono'\n;import { rateLimit }");
    expect(text).toContain("} from 'edge-weir';(async () => {})()");
  });

  it.each([
    {
      init: "(new Hono)\n  .get('/a', (c) => c.text('a'))",
      expected: "((new Hono()).use(rateLimit",
    },
    {
      init: "(new Hono())\n  .get('/a', (c) => c.text('a'))",
      expected: "((new Hono()).use(rateLimit",
    },
    { init: "(new Hono)", expected: "(new Hono)\n\napp.use(rateLimit(config))" },
  ])("fits an app that is created by $init", ({ init, expected }) => {
    const { text, byHand } = edited(APP.replace("new Hono()", init));
    expect(text).toContain(expected);
    expect(byHand).toEqual([]);
  });

  it("is also added to an app that is exported by { app as default }", () => {
    const text = APP.replace("export default app", "export { app as default }");
    expect(edited(text).added).toContain("app.use(rateLimit(config));");
  });

  it("keeps the export of an imported class", () => {
    const own = "import { CounterObject as C } from 'edge-weir'\nexport { C as CounterObject }";
    expect(edited(`${own}\n${APP}`).added).toContain("export { ControlObject } from 'edge-weir';");
  });

  it("is not added a second time", () => {
    const { text } = edited(APP);
    expect(edited(text)).toMatchObject({ text, changes: [], byHand: [] });
  });

  it.each([
    { name: "that creates two apps", text: `${APP}\nconst api = new Hono()\n` },
    { name: "that does not export the app", text: APP.replace("export default", "serve(") },
    { name: "that imports the app", text: "import app from './app'\nexport default app\n" },
    { name: "that wraps the app", text: APP.replace("default app", "default wrap(app)") },
    { name: "that creates the app in a function", text: APP.replace("new Hono()", "create()") },
    { name: "with another class Hono", text: APP.replace("'hono'", "'./hono'") },
    { name: "that cannot be parsed", text: `${APP}\nconst = 1\n` },
  ])("is left to the user in a file $name, with the lines to add", ({ text }) => {
    const edit = edited(text);
    expect(edit.text).toBe(text);
    expect(edit.changes).toEqual([]);
    expect(edit.byHand.join("\n")).toContain("app.use(rateLimit(config));");
    expect(edit.byHand.join("\n")).toMatch(
      /export \{ ControlObject, CounterObject \} from ["']edge-weir["'];/,
    );
  });
});
