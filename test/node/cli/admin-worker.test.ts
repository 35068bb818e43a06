import { once } from "node:events";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { PATIENCE } from "../../patience.ts";
import { open, send } from "../support/client.ts";
import { type RunningWorker, startWorker, TIMEOUT_MS } from "../support/worker.ts";
import { callWeir, type Run, temporaryFolder } from "./run-weir.ts";

// The commands for operators against a real Worker with its control object.

const TOKEN = "admin-token-of-more-than-32-characters";
const READ_TOKEN = "read-token-of-more-than-32-characters!";
const RULES = [
  { name: "login", match: { paths: ["/login"] }, limit: 2, window: "52w" },
  {
    name: "keys",
    match: { paths: ["/keys"] },
    key: "header:x-api-key",
    limit: 1,
    window: "52w",
    ban: "1h",
  },
  { name: "model", match: { paths: ["/model"] }, concurrent: 4 },
];

let worker: RunningWorker;

beforeAll(async () => {
  const config = JSON.stringify({ timeoutMs: TIMEOUT_MS, rules: RULES });
  worker = await startWorker({
    config: { rules: [] },
    main: `
      import { ControlObject, CounterObject, defineConfig, weir } from "./weir.mjs";
      const limiter = weir(defineConfig(${config}));
      const endless = () => new ReadableStream({
        async pull(controller) {
          await scheduler.wait(20);
          controller.enqueue(new Uint8Array(1));
        },
      });
      const app = ({ url }) => new Response(url.endsWith("/model") ? endless() : "app");
      export default { fetch: (request, env, ctx) => limiter.fetch(request, env, ctx, app) };
      export { ControlObject, CounterObject };
    `,
    // The isolate learns of overrides at its next upload.
    constants: {
      "src/control/protocol.ts": { UPLOAD_INTERVAL_MS: 200 },
      "src/control/control-link.ts": { MIN_DELAY_MS: 50 },
    },
    vars: { WEIR_ADMIN_TOKEN: TOKEN, WEIR_ADMIN_READ_TOKEN: READ_TOKEN },
  });
});
afterAll(() => worker.stop());

async function weir(args: readonly string[], token = TOKEN): Promise<Run> {
  await using folder = await temporaryFolder();
  const env = { WEIR_ADMIN_TOKEN: token, WEIR_ADMIN_READ_TOKEN: undefined };
  return await callWeir([...args, "--at", worker.url.href], folder.path, env);
}

async function request(path: string, headers: Record<string, string>): Promise<number> {
  return (await send(worker.url, path, { headers })).status;
}

it("shows a limited client, raises its limit, and removes the override", async () => {
  const client = { "cf-connecting-ip": "203.0.113.7" };
  for (const status of [200, 200, 429]) expect(await request("/login", client)).toBe(status);
  const peek = await weir(["peek", "--ip", "203.0.113.7"]);
  expect(peek).toMatchObject({ code: 0, stderr: "" });
  expect(peek.stdout).toMatch(/^login {2}client [\w-]{22}, counted by ip\n.*\n +login +2 +0 +52w/);

  const selected = ["override", "login", "--ip", "203.0.113.7", "--reason", "Ticket 4711"];
  const set = await weir([...selected, "--limit", "50", "--for", "2h"]);
  expect(set).toMatchObject({ code: 0, stderr: "" });
  await vi.waitFor(async () => expect(await request("/login", client)).toBe(200), PATIENCE);
  expect((await weir(["overrides"])).stdout).toMatch(/login = 50 .* Ticket 4711\n$/);

  expect(await weir([...selected, "--remove"])).toMatchObject({ code: 0, stderr: "" });
  await vi.waitFor(async () => expect(await request("/login", client)).toBe(429), PATIENCE);
  expect((await weir(["overrides"])).stdout).toBe("There are no overrides.\n");
});

it("shows how many requests of a client are open, and the highest number in the metrics", async () => {
  const headers = { "cf-connecting-ip": "203.0.113.9" };
  const requests = Array.from({ length: 3 }, () => open(worker.url, "/model", { headers }).end());
  await Promise.all(requests.map((request) => once(request, "response")));
  const peek = () => weir(["peek", "model", "--ip", "203.0.113.9"]);
  expect((await peek()).stdout).toContain("███████████████░░░░░ 3 / 4\n");
  for (const each of requests) each.on("error", () => {}).destroy();
  await vi.waitFor(async () => expect((await peek()).stdout).toContain(" 0 / 4\n"), PATIENCE);
  await vi.waitFor(async () => {
    const authorization = `Bearer ${READ_TOKEN}`;
    const { body } = await send(worker.url, "/_weir/metrics", { headers: { authorization } });
    expect(String(body)).toContain('\nweir_rule_open_requests_highest{rule="model"} 3\n');
  }, PATIENCE);
});

it("lifts a ban, and resets a client", async () => {
  const client = { "x-api-key": "a-key" };
  for (const status of [200, 429]) expect(await request("/keys", client)).toBe(status);
  const known = ["--known", "header:x-api-key=a-key"];
  expect((await weir(["peek", "keys", ...known])).stdout).toContain("banned for another");
  const lifted = await weir(["reset", "keys", ...known, "--ban-only", "--reason", "Ticket"]);
  expect(lifted.stdout).not.toContain("banned for another");
  expect(lifted).toMatchObject({ code: 0, stderr: "" });
  expect(lifted.stdout).toMatch(/ keys +1 +0 /);
  const reset = await weir(["reset", "keys", ...known, "--reason", "Ticket"]);
  expect(reset.stdout).toMatch(/ keys +1 +1 /);
  await vi.waitFor(async () => expect(await request("/keys", client)).toBe(200), PATIENCE);
});

it("shows who was limited most, and the sums", async () => {
  const client = { "cf-connecting-ip": "203.0.113.8" };
  for (let sent = 0; sent < 12; sent++) await request("/login", client);
  const peeked = await weir(["peek", "login", "--ip", "203.0.113.8", "--json"]);
  const identity = JSON.parse(peeked.stdout).clients[0].client;
  await vi.waitFor(async () => {
    const { clients } = JSON.parse((await weir(["top", "--rule", "login", "--json"])).stdout);
    expect(clients).toContainEqual(expect.objectContaining({ client: identity, count: 10 }));
  }, PATIENCE);
  const { stdout } = await weir(["stats", "--by", "minute"]);
  expect(stdout).toMatch(/^Last 1h: \d+ requests, \d+ limited/);
  expect(stdout).toMatch(/^login +\d+ +\d+ +[1-9]\d+ /m);
});

it.each<[string, readonly string[], string, number, RegExp]>([
  [
    "a rule that does not exist",
    ["peek", "logins", "--ip", "::1"],
    TOKEN,
    1,
    /no rule logins. Did you mean login/,
  ],
  [
    "an override that does not exist",
    ["override", "login", "--remove", "--reason", "x"],
    TOKEN,
    1,
    /^The rule login has no override for all clients\.$/m,
  ],
  [
    "an unusual time",
    ["override", "login", "--mode", "off", "--for", "soon", "--reason", "x"],
    TOKEN,
    1,
    /^--for is "soon"\. Allowed: /,
  ],
  [
    "a change with the token for reading",
    ["override", "login", "--mode", "off", "--for", "1h", "--reason", "x"],
    READ_TOKEN,
    1,
    /may only read/,
  ],
  ["a wrong token", ["overrides"], `${TOKEN}x`, 2, /answered like any server without/],
])("refuses %s", async (_, args, token, code, message) => {
  const run = await weir(args, token);
  expect(run).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(message) });
});
