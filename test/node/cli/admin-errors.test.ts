import getPort from "get-port";
import { expect, it } from "vitest";
import { type Fake, problem, startFakeApi, TOKEN } from "./fake-api.ts";
import { callWeir, temporaryFolder } from "./run-weir.ts";

// What an operator reads when a command cannot be carried out, and its exit code.

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
    "--for must be a time",
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

it.each<[string[], { path: string; message: string }, string]>([
  [
    ["override", "login", "--mode", "off", "--for", "2h", "--reason", " "],
    { path: "reason", message: "must be a text." },
    "--reason must be a text.\n",
  ],
  [
    ["reset", "login", "--client", "aNameOfTwentyTwoChars_", "--reason", "Why"],
    { path: "client", message: "must be an identity." },
    "--client must be an identity.\n",
  ],
  [
    ["peek", "--ip", "::1"],
    { path: "known", message: 'For the rule "login", ip must be an IP address.' },
    '--ip: For the rule "login", ip must be an IP address.\n',
  ],
  [
    ["peek", "--ip", "::1", "--known", "header:x-api-key=a"],
    { path: "known", message: "must have texts of 1 to 1024 characters." },
    "--ip and --known must have texts of 1 to 1024 characters.\n",
  ],
  [["stats"], { path: "from", message: "must be a time." }, "--last must be a time.\n"],
])("names the option and not the field of the API, once: %j", async (args, fault, printed) => {
  const detail = `${fault.path} ${fault.message}`;
  const rules = { rules: [{ name: "login", limits: [], hasBan: true }] };
  await using api = await startFakeApi({
    "GET rules": rules,
    any: problem(400, detail, [fault]),
  });
  expect(await api.run(...args)).toEqual({ code: 1, stdout: "", stderr: printed });
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

it("explains that a token is too short", async () => {
  await using folder = await temporaryFolder();
  await using api = await startFakeApi({});
  const env = { WEIR_ADMIN_TOKEN: "short", WEIR_ADMIN_READ_TOKEN: undefined };
  const run = await callWeir(["overrides", "--at", api.url], folder.path, env);
  const message = "has 5 characters. Weir accepts only tokens of at least 32.";
  expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
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
  ["https://bob:hunter2secret@api.example.com/", "has a user or a password"],
  ["api.example.com/hunter2secret", "is not an http or https URL"],
  ["ftp://api.example.com/hunter2secret", "is not an http or https URL"],
  ["http://api.example.com/hunter2secret", "The token was not sent: over http"],
])("explains that it cannot call %s", async (at, message) => {
  await using folder = await temporaryFolder();
  const run = await callWeir(["top", "--at", at], folder.path, { WEIR_ADMIN_TOKEN: TOKEN });
  expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
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
