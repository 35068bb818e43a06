import { expect, it } from "vitest";
import { runExplain } from "./explain-command.ts";

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

const ONLY_LOGIN = { log: { entries: [LOGIN] } };

async function explainHar(har: unknown, ...args: string[]) {
  const text = typeof har === "string" ? har : JSON.stringify(har);
  return await runExplain(CONFIG, ["--har", "session.har", ...args], {}, { "session.har": text });
}

it.each<[string, unknown, string[]]>([
  ["the only entry of a file", { log: { entries: [LOGIN] } }, []],
  ["a numbered entry of a file", { log: { entries: [PAGE, LOGIN, PAGE] } }, ["--entry", "2"]],
  ["a file with a byte order mark", `\ufeff${JSON.stringify({ log: { entries: [LOGIN] } })}`, []],
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
    const { stdout } = await explainHar(ONLY_LOGIN, ...args);
    expect(stdout).toContain("cookie:session");
    expect(stdout).not.toMatch(/secret-session|secret-token|0123456789/);
  }
});

const BODY = '{"email":"a@example.com"}';
const CUSTOM = `export default {
  rules: [{ name: "accounts", key: "custom:account", limit: 5, window: "1m" }],
  custom: { keys: { account: async (request) => (await request.clone().json()).email } },
};`;

it.each<[string, string[], object]>([
  ["--data-raw", ["https://a.example/", "--data-raw", BODY], {}],
  [
    "a HAR entry",
    ["--har", "session.har"],
    { log: { entries: [{ request: { ...request("POST", "/"), postData: { text: BODY } } }] } },
  ],
])("lets functions read the body of %s", async (_, args, session) => {
  const command = ["--config", "weir.config.mjs", ...args, "--json"];
  const files = { "session.har": JSON.stringify(session), "weir.config.mjs": CUSTOM };
  const { stdout } = await runExplain({}, command, {}, files);
  expect(JSON.parse(stdout).rules[0].key[0].alternatives[0].result).toBe("used");
});

it("replaces and removes fields of the entry by -H", async () => {
  const { stdout } = await explainHar(
    ONLY_LOGIN,
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
    /has 2 entries\. .*--entry:\n +1 {2}GET https:\/\/api\.example\.com\/\n +2 {2}POST https:\/\/api\.example\.com\/login\n$/,
  ],
  ["an entry that is missing", { log: { entries: [PAGE] } }, ["--entry", "2"], /has 1 entries/],
  ["no entries", { log: { entries: [] } }, [], /has 0 entries/],
  ["another document", { rules: [] }, [], /needs log\.entries/],
  ["no JSON", "session=secret", [], /^The HAR file is not JSON(?!.*secret)/],
  ["an entry without a URL", { log: { entries: [{ request: { method: "GET" } }] } }, [], /needs/],
  [
    "a name that is no name",
    { log: { entries: [{ request: request("GET", "/", ["a b", "secret"]) }] } },
    [],
    /^The HAR file: "a b" is not(?!.*secret)/,
  ],
  ["entry 0", ONLY_LOGIN, ["--entry", "0"], /--entry .*first entry is 1/],
])("exits with 1 for %s", async (_, har, args, message) => {
  const { code, stdout, stderr } = await explainHar(har, ...args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(message);
});

it("lists at most thirty entries, without queries and without characters that a terminal obeys", async () => {
  const hostile = { request: request("G\u001b[31mET", "/\u202e?k=secret") };
  const { stderr } = await explainHar({ log: { entries: new Array(2000).fill(hostile) } });
  expect(stderr.trimEnd().split("\n")).toHaveLength(32);
  expect(stderr).toMatch(/and 1970 more$/m);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be missing
  expect(stderr).not.toMatch(/secret|[\u0000-\u0009\u000b-\u001f\u202e]/);
});
