import getPort from "get-port";
import { describe, expect, it } from "vitest";
import { BREAK, type Fake, problem, startFakeApi, TOKEN } from "./fake-api.ts";
import { callWeir, temporaryFolder } from "./run-weir.ts";

// The message for an operator when a command cannot be carried out, and the exit code.

const HTML = { "content-type": "text/html; charset=utf-8" };
const READ_TOKEN = "read-token-of-more-than-32-characters";

it.each<[string, Fake, number, string]>([
  ["a page of the origin", { status: 200, headers: HTML, text: "<html>" }, 2, "a page in HTML"],
  ["another JSON document", { message: "hello" }, 2, "(HTTP 200, another answer)"],
  ["an empty answer", { status: 204, text: "" }, 2, "(HTTP 204, another answer)"],
  ["a list", { status: 200, text: "[]" }, 2, "another answer"],
  ["a 404 of the origin", { status: 404, text: "not found" }, 2, "1. The token (the environment"],
  ["a rule that does not exist", problem(404, "There is no rule x."), 1, "There is no rule x."],
  [
    "faults of the body",
    problem(400, "The body has a fault.", [{ path: "expiresIn", message: "must be a time" }]),
    1,
    "The body has a fault.",
  ],
  [
    "a token that may only read",
    problem(403, "This token may only read."),
    1,
    "set WEIR_ADMIN_TOKEN",
  ],
  ["a missing control object", problem(503, "Add the binding WEIR_CONTROL."), 2, "WEIR_CONTROL"],
  [
    "too many attempts",
    { status: 429, headers: { "retry-after": "41" }, text: "slow down" },
    2,
    "Try again in 41 s",
  ],
  [
    "a redirect",
    { status: 301, headers: { location: "https://www.example.com/x?a=secret" }, text: "" },
    2,
    "redirect (301) to https://www.example.com. The token was not sent there.",
  ],
  [
    "the login of Cloudflare Access",
    { status: 302, headers: { location: "https://t.cloudflareaccess.com/login" }, text: "" },
    2,
    "Cloudflare Access protects this host",
  ],
  ["half a document", { status: 200, text: '{"overrides": [' }, 2, "another answer"],
])("explains %s", async (_, answer, code, message) => {
  await using api = await startFakeApi({ any: answer });
  const run = await api.run("overrides");
  expect(run).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
  expect(run.stderr).not.toContain(TOKEN);
  expect(api.sent).toHaveLength(1);
});

it.each([["overrides"], ["top"], ["stats"], ["peek", "--ip", "::1"]])(
  "explains an answer of another version of the Worker: %s",
  async (...args) => {
    const overrides = [{ rule: "x", effect: null }];
    const any = { overrides, rules: [{}], clients: [{}], buckets: [{}] };
    await using api = await startFakeApi({ any });
    const run = await api.run(...args, "--json");
    expect(run).toMatchObject({ code: 2, stderr: "" });
    expect(JSON.parse(run.stdout).error).toContain("The answer has another form than expected.");
  },
);

it("prints a message of the API to its end", async () => {
  const detail = `The control object did not answer. ${"Check each of its parts. ".repeat(10)}Try again.`;
  await using api = await startFakeApi({ any: problem(503, detail) });
  expect(await api.run("overrides")).toEqual({ code: 2, stdout: "", stderr: `${detail}\n` });
});

it("does not follow a redirect, which would send the token to another server", async () => {
  await using other = await startFakeApi({ any: { overrides: [] } });
  const headers = { location: `${other.url}/_weir/api/overrides` };
  await using api = await startFakeApi({ any: { status: 307, headers, text: "" } });
  expect(await api.run("overrides")).toMatchObject({ code: 2 });
  expect(other.sent).toEqual([]);
});

it("prints no token, no control character and no long text of a server", async () => {
  const detail = `${TOKEN} \u001b[31m ${"x".repeat(10_000)}`;
  await using api = await startFakeApi({ any: problem(400, detail) });
  const { stderr } = await api.run("overrides");
  expect(stderr).not.toContain(TOKEN);
  expect(stderr).not.toContain("\u001b");
  expect(stderr.length).toBeLessThan(400);
});

it.each([
  ["https://bob:hunter2secret@api.example.com/", 1, "has a user or a password"],
  ["localhost:8787/hunter2secret", 1, "is not an http or https URL"],
  ["ftp://api.example.com/hunter2secret", 1, "is not an http or https URL"],
  ["http://api.example.com/hunter2secret", 2, "The token was not sent: over http"],
])("explains that it cannot call %s, with exit code %i", async (at, code, message) => {
  await using folder = await temporaryFolder();
  const run = await callWeir(["top", "--at", at], folder.path, { WEIR_ADMIN_TOKEN: TOKEN });
  expect(run).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
  expect(run.stderr).not.toContain("hunter2secret");
});

it("explains that nothing listens at the URL", async () => {
  const port = await getPort({ host: "127.0.0.1" });
  await using folder = await temporaryFolder();
  const at = `http://127.0.0.1:${port}/hunter2secret`;
  const run = await callWeir(["top", "--at", at], folder.path, { WEIR_ADMIN_TOKEN: TOKEN });
  expect(run).toMatchObject({ code: 2, stdout: "" });
  expect(run.stderr).toContain(`Nothing listens at http://127.0.0.1:${port}: the connection`);
  expect(run.stderr).not.toContain("hunter2secret");
});

it.each<[string, Record<string, string | undefined>, Record<string, string>, string]>([
  ["the environment", { WEIR_ADMIN_TOKEN: TOKEN }, {}, TOKEN],
  ["the environment, for reading", { WEIR_ADMIN_READ_TOKEN: READ_TOKEN }, {}, READ_TOKEN],
  [
    "the environment before a file",
    { WEIR_ADMIN_READ_TOKEN: READ_TOKEN },
    { ".dev.vars": `WEIR_ADMIN_TOKEN=${TOKEN}` },
    READ_TOKEN,
  ],
  [".dev.vars", {}, { ".dev.vars": `WEIR_ADMIN_TOKEN=${TOKEN}` }, TOKEN],
  [".env", {}, { ".env": `WEIR_ADMIN_READ_TOKEN=${READ_TOKEN}` }, READ_TOKEN],
  [
    "the token with all rights first",
    {},
    { ".env": `WEIR_ADMIN_READ_TOKEN=${READ_TOKEN}\nWEIR_ADMIN_TOKEN=${TOKEN}` },
    TOKEN,
  ],
])("takes the token from %s", async (_, env, files, token) => {
  await using folder = await temporaryFolder();
  for (const [name, content] of Object.entries(files)) await folder.write(name, content);
  await using api = await startFakeApi({ "GET overrides": { overrides: [] } });
  const none = { WEIR_ADMIN_TOKEN: undefined, WEIR_ADMIN_READ_TOKEN: undefined };
  const run = await callWeir(["overrides", "--at", api.url], folder.path, { ...none, ...env });
  expect(run.code).toBe(0);
  expect(api.sent.map(({ authorization }) => authorization)).toEqual([`Bearer ${token}`]);
});

it.each([
  ["there is none", "", "There is no token: neither WEIR_ADMIN_TOKEN nor WEIR_ADMIN_READ_TOKEN"],
  ["it has white space", 'WEIR_ADMIN_TOKEN="two words"', "white space"],
])("makes no call if the token cannot be used, because %s", async (_, content, message) => {
  await using folder = await temporaryFolder();
  await folder.write(".dev.vars", content);
  await using api = await startFakeApi({});
  const none = { WEIR_ADMIN_TOKEN: undefined, WEIR_ADMIN_READ_TOKEN: undefined };
  const run = await callWeir(["overrides", "--at", api.url], folder.path, none);
  expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
  expect(api.sent).toEqual([]);
});

describe("a change", () => {
  const RULES = {
    "GET rules": { rules: [{ name: "login", limits: [], hasBan: true, windows: [] }] },
  };
  const CLIENT = ["--client", "aNameOfTwentyTwoChars_", "--reason", "Why"];
  const RESET = ["reset", "login", ...CLIENT];
  const BLOCK = ["override", "login", "--block", "--for", "1h", ...CLIENT];
  const OFF = ["override", "login", "--mode", "off", "--for", "1h", "--reason", "Why"];
  const REMOVE = ["override", "login", "--remove", ...CLIENT];
  const COMMANDS = [RESET, [...RESET, "--ban-only"], BLOCK, OFF, REMOVE];
  const DOUBT = /change (?:may have been|was) made/i;

  it.each<[string, Fake]>([
    ["the connection breaks", BREAK],
    ["the answer breaks off", { status: 200, text: '{"override": {' }],
    ["the answer is empty", { status: 204, text: "" }],
    ["a proxy gives up", { status: 504, headers: HTML, text: "<html>Gateway time-out" }],
    ["Cloudflare gives up", { status: 524, headers: HTML, text: "<html>A timeout occurred" }],
    ["Weir does not know", problem(503, "It is not known whether the change was made.")],
    ["the answer has another form", { override: null, overrides: [null], clients: [null] }],
  ])("may have been made if %s: 3", async (_, any) => {
    await using api = await startFakeApi({ ...RULES, any });
    for (const command of COMMANDS) {
      const { code, stderr } = await api.run(...command);
      expect({ command, code, stderr }).toEqual({
        command,
        code: 3,
        stderr: expect.stringMatching(DOUBT),
      });
    }
  });

  it.each<[string, Fake, number]>([
    ["nothing was changed", problem(503, "No.", undefined, { changed: false }), 2],
    ["it is refused", problem(403, "This token may only read."), 1],
    ["there are too many requests", { status: 429, text: "slow down" }, 2],
    ["the server is not Weir", { status: 404, text: "not found" }, 2],
    ["the server redirects", { status: 302, headers: { location: "/x" }, text: "" }, 2],
  ])("was not made if %s: %s", async (_, any, code) => {
    await using api = await startFakeApi({ ...RULES, any });
    for (const command of [RESET, BLOCK, OFF]) {
      const run = await api.run(...command);
      expect({ command, code: run.code }).toEqual({ command, code });
      expect(run.stderr).not.toMatch(DOUBT);
    }
  });

  it("was not made if nothing listens: 2", async () => {
    const at = `http://127.0.0.1:${await getPort({ host: "127.0.0.1" })}`;
    await using folder = await temporaryFolder();
    const run = await callWeir([...REMOVE, "--at", at], folder.path, { WEIR_ADMIN_TOKEN: TOKEN });
    expect(run.code).toBe(2);
    expect(run.stderr).not.toMatch(DOUBT);
  });

  it("was made in part if the second of two overrides cannot be removed: 3", async () => {
    const override = { rule: "login", client: "a", effect: { block: true }, expiresAt: 1 };
    const clients = ["a", "b"].map((client) => ({ client, rule: "login", override }));
    let removals = 0;
    await using api = await startFakeApi({
      ...RULES,
      "POST peek": { clients },
      get "DELETE overrides"() {
        return ++removals === 1 ? { override } : { status: 429, text: "slow down" };
      },
    });
    const run = await api.run("override", "login", "--remove", "--ip", "::1", "--reason", "Why");
    expect(run).toMatchObject({ code: 3, stdout: "" });
    expect(run.stderr).toMatch(/Removed: login, client a/);
  });

  it("says so in JSON too", async () => {
    await using api = await startFakeApi({ ...RULES, any: problem(503, "No answer.") });
    const { code, stdout } = await api.run(...RESET, "--json");
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: expect.stringMatching(DOUBT) });
  });
});

it("is no doubt if a command that reads gets no answer: 2", async () => {
  await using api = await startFakeApi({ any: BREAK });
  const run = await api.run("peek", "--ip", "::1");
  expect(run.code).toBe(2);
  expect(run.stderr).not.toMatch(/may have been made/);
});

it("names a Hono app without weirAdmin among the reasons why the API does not exist", async () => {
  await using api = await startFakeApi({});
  expect((await api.run("top")).stderr).toContain("mounts weirAdmin(config)");
});
