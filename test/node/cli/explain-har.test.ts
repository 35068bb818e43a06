import { open } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runExplain } from "./explain-command.ts";
import { callWeir, temporaryFolder } from "./run-weir.ts";

const CONFIG = {
  rules: [
    { name: "keys", match: { methods: ["POST"] }, key: "header:x-api-key", limit: 5, window: "1m" },
    { name: "sessions", key: "cookie:session", limit: 5, window: "1m" },
  ],
};
const request = (method: string, path: string, ...headers: (readonly [string, string])[]) => ({
  method,
  url: `https://api.example.com${path}`,
  httpVersion: "h2",
  headers: headers.map(([name, value]) => ({ name, value })),
});
const LOGIN = {
  startedDateTime: "2026-11-23T08:00:00.000Z",
  request: {
    ...request(
      "POST",
      "/login?token=secret-token",
      [":authority", "other.example.com"],
      [":method", "GET"],
      ["Host", "other.example.com"],
      ["X-Api-Key", "key-0123456789"],
      ["Cookie", "session=secret-session"],
    ),
    bodySize: 12,
  },
  response: { status: 429 },
};
const PAGE = { request: request("GET", "/") };

async function explainHar(har: unknown, ...args: string[]) {
  const text = typeof har === "string" ? har : JSON.stringify(har);
  return await runExplain(CONFIG, ["--har", "session.har", ...args], {}, { "session.har": text });
}

it.each<[string, unknown, string[]]>([
  ["the only entry of a file", { log: { entries: [LOGIN] } }, []],
  ["a numbered entry of a file", { log: { entries: [PAGE, LOGIN, PAGE] } }, ["--entry", "2"]],
  ["a single entry", LOGIN, []],
  ["a single request", LOGIN.request, []],
  ["a list of entries", [PAGE, LOGIN], ["--entry", "2"]],
  ["a file with a byte order mark", `\ufeff${JSON.stringify(LOGIN)}`, []],
])("explains %s", async (_, har, args) => {
  const { code, stdout, stderr } = await explainHar(har, ...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const { request, rules } = JSON.parse(stdout);
  expect(request).toMatchObject({ method: "POST", host: "api.example.com", path: "/login" });
  expect(rules[0]).toMatchObject({ applies: true, key: [{ isFallback: false }] });
  expect(rules[1]).toMatchObject({ applies: true, key: [{ isFallback: false }] });
});

it("never prints the values of cookies and credentials", async () => {
  for (const args of [[], ["--json"], ["--verbose"]]) {
    const { stdout } = await explainHar(LOGIN, ...args);
    expect(stdout).toContain("cookie:session");
    expect(stdout).not.toMatch(/secret-session|secret-token|0123456789/);
  }
});

const BODY = '{"email":"a@example.com"}';
const CUSTOM = `export default {
  rules: [{ name: "accounts", key: "custom:account", limit: 5, window: "1m" }],
  custom: { keys: { account: async (request) => (await request.clone().json()).email } },
};`;
const har = (postData?: object) =>
  JSON.stringify({ request: { ...request("POST", "/login"), postData, bodySize: 24 } });

it.each<[string, string[], string, RegExp | undefined]>([
  ["curl", ["--curl", `curl https://a.example/ --data-raw '${BODY}'`], "", undefined],
  ["a HAR entry", ["--har", "session.har"], har({ text: BODY }), undefined],
  ["a file", ["--curl", "curl https://a.example/ -d @file"], "", /body is unknown/],
  ["GET", ["--curl", `curl https://a.example/ -X GET -d '${BODY}'`], "", /with GET, none/],
  [
    "an upload",
    ["--har", "session.har"],
    har({ text: `{"email":"${"a".repeat(65_536)}"}` }),
    /more than 64 KiB/,
  ],
  ["a HAR entry without its text", ["--har", "session.har"], har(), /lacks the text of its body/],
])("lets functions read the body of %s, or notes why not", async (_, args, session, note) => {
  const command = ["--config", "weir.config.mjs", ...args, "--json"];
  const files = { "session.har": session, "weir.config.mjs": CUSTOM };
  const { stdout } = await runExplain({}, command, {}, files);
  const { rules, notes } = JSON.parse(stdout);
  expect(rules[0].key[0].alternatives[0].result).toBe(note ? "absent" : "used");
  expect(notes.filter((each: string) => /body/.test(each))).toEqual(
    note ? [expect.stringMatching(note)] : [],
  );
});

it("says that a browser has left out the credentials", async () => {
  const log = { creator: { name: "WebInspector" }, entries: [PAGE] };
  const { stdout } = await explainHar({ log });
  expect(stdout).toMatch(/neither Cookie nor\s+Authorization/);
});

it("replaces and removes fields of the entry by -H", async () => {
  const { stdout } = await explainHar(
    LOGIN,
    "--json",
    "-H",
    "x-api-key:",
    "-H",
    "cookie: session=",
  );
  const { rules } = JSON.parse(stdout);
  expect(rules[0].key[0].alternatives[0]).toMatchObject({ result: "absent" });
  expect(rules[1].key[0].alternatives[0]).toMatchObject({ result: "absent" });
});

it.each<[string, unknown, string[], RegExp]>([
  [
    "several entries without --entry",
    { log: { entries: [PAGE, LOGIN] } },
    [],
    /has 2 entries\. .*--entry:\n {2}1 {2}GET https:\/\/api\.example\.com\/\n {2}2 {2}POST https:\/\/api\.example\.com\/login\n$/,
  ],
  ["an entry that is missing", { log: { entries: [PAGE] } }, ["--entry", "2"], /entries 1 to 1/],
  ["no entries", { log: { entries: [] } }, [], /has no entries/],
  ["another document", { rules: [] }, [], /has no log\.entries/],
  ["no JSON", "session=secret", [], /^The HAR file is not JSON(?!.*secret)/],
  ["an entry without a URL", [{ request: { method: "GET" } }], [], /Entry 1 .*method and url/],
  [
    "a field without a name",
    [{ request: { ...PAGE.request, headers: [{ value: "secret" }] } }],
    [],
    /^Entry 1 (?!.*secret).*name and value/,
  ],
  ["entry 0", LOGIN, ["--entry", "0"], /--entry .*first entry is 1/],
])("exits with 1 for %s", async (_, har, args, message) => {
  const { code, stdout, stderr } = await explainHar(har, ...args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(message);
});

it("reads files of at most 128 MiB", async () => {
  await using folder = await temporaryFolder();
  const size = 128 * 1024 * 1024;
  for (const [bytes, message] of [
    [size, /^The HAR file is not JSON/],
    [size + 1, /^large\.har has more than 128 MiB/],
  ] as const) {
    await using file = await open(join(folder.path, "large.har"), "w");
    await file.truncate(bytes);
    const run = await callWeir(["explain", "--har", "large.har"], folder.path);
    expect(run).toMatchObject({ code: 1, stderr: expect.stringMatching(message) });
  }
});
