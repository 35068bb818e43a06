import { createExecutionContext, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import agency from "guide:customers/many-sites-in-one-worker";
import saas from "guide:customers/plans-by-api-key";
import batches from "guide:functions/costs";
import tools from "guide:functions/mcp-servers";
import denials from "guide:functions/responses";
import llm from "guide:llm";
import modelServer from "guide:model-server";
import fromCloudflare from "guide:moving/from-cloudflares-rate-limiting-rules";
import fromEnvoy from "guide:moving/from-envoy";
import fromExpress from "guide:moving/from-express-rate-limit";
import fromHono from "guide:moving/from-hono-rate-limiter";
import fromKong from "guide:moving/from-kong";
import fromNginx from "guide:moving/from-nginx";
import fromTraefik from "guide:moving/from-traefik";
import fromUpstash from "guide:moving/from-upstashratelimit";
import contracts from "guide:own-limits/contracts-in-d1";
import claims from "guide:own-limits/numbers-in-a-token";
import plansInKv from "guide:own-limits/plans-in-kv";
import queue from "guide:queue";
import denyList from "guide:recipes/deny-lists";
import readsAndWrites from "guide:recipes/fast-reads-exact-writes";
import login from "guide:recipes/logins";
import uploads from "guide:recipes/uploads";
import webhooks from "guide:recipes/webhooks";
import tried from "guide:replay";
import warnings from "guide:webhooks";
import { sign } from "hono/jwt";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import webhookWorker from "../../examples/quota-events/worker.ts";
import { inputOf } from "../../src/config/define.ts";
import {
  type Config,
  type ConfigInput,
  defineConfig,
  type QuotaEvent,
  type RuleInput,
} from "../../src/config/index.ts";
import { WeirService, weir } from "../../src/index.ts";
import { PATIENCE } from "../patience.ts";

const DAY = 86_400_000;
const JWT_SECRET = "a secret for the tokens of these tests";

/** Each test has a day of its own, because an isolate remembers denials until their window ends. */
let today = Date.UTC(2026, 10, 23);

beforeEach(() => {
  // A minute, an hour and a day begin at this time, so no window ends during a test.
  vi.useFakeTimers({ toFake: ["Date"], now: today });
  today += 7 * DAY;
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await reset();
});

interface Outgoing extends RequestInit {
  readonly ip?: string;
  /** Cloudflare's data about the client. */
  readonly facts?: object;
  readonly headers?: Record<string, string>;
}

/**
 * Creates a Worker with the configuration of a guide, in front of an origin. Returns a function that
 * sends it a request.
 */
function workerWith(
  config: Config,
  bindings: object = {},
  origin: (request: Request) => Response | Promise<Response> = () => new Response("found"),
) {
  const reached = vi.fn(origin);
  vi.spyOn(globalThis, "fetch").mockImplementation((input, init) =>
    Promise.resolve(reached(new Request(input, init))),
  );
  // On a busy machine, the store may miss the default deadline of a second.
  const input = inputOf(config) as ConfigInput;
  const { fetch } = weir({ ...input, timeoutMs: 30_000 });
  const send = (url: string, { ip = "203.0.113.1", facts, headers, ...rest }: Outgoing = {}) => {
    const request = new Request(url, { ...rest, headers: { "CF-Connecting-IP": ip, ...headers } });
    if (facts) Object.defineProperty(request, "cf", { value: facts });
    // The clock of these tests jumps by days, so the overrides would be out of date in most requests.
    const all = { ...env, WEIR_CONTROL: undefined, ...bindings };
    return fetch(request as never, all, createExecutionContext());
  };
  return { reached, send };
}

/**
 * Sends the same request several times, and returns how often each status occurred: `{ 200: 5 }`.
 */
async function countStatuses(times: number, send: (index: number) => Promise<Response>) {
  const counts: Record<number, number> = {};
  for (let index = 0; index < times; index++) {
    const { status } = await send(index);
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

async function tokenOf(user: string) {
  return { authorization: `Bearer ${await sign({ sub: user }, JWT_SECRET, "HS256")}` };
}

describe("docs/guides/recipes.md, webhooks", () => {
  const bindings = { WEBHOOK_TOKEN: "the-token" };
  const known = { "x-webhook-token": "the-token" };
  const post = { method: "POST", body: "{}" };

  it("lets a known sender's burst pass, and then answers 503 with Retry-After", async () => {
    const { send } = workerWith(webhooks, bindings);
    const deliver = () =>
      send("https://hooks.example/webhooks/stripe", { ...post, headers: known });
    expect(await countStatuses(201, deliver)).toEqual({ 200: 200, 503: 1 });
    const refused = await deliver();
    expect(await refused.text()).toBe("Busy. Send this event again later.");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(10);
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(40);
  });

  it("counts each sender separately", async () => {
    const { send } = workerWith(webhooks, bindings);
    const deliver = (sender: string) => () =>
      send(`https://hooks.example/webhooks/${sender}`, { ...post, headers: known });
    const quotas = [];
    for (const sender of ["stripe", "stripe", "github", "stripe"]) {
      quotas.push((await deliver(sender)()).headers.get("ratelimit")?.match(/r=\d+/)?.[0]);
    }
    expect(quotas).toEqual(["r=199", "r=198", "r=199", "r=197"]);
  });

  it("denies a stranger with 429, and keeps the sender's quota", async () => {
    const { send } = workerWith(webhooks, bindings);
    const url = "https://hooks.example/webhooks/stripe";
    expect(await countStatuses(60, () => send(url, post))).toEqual({ 200: 30, 429: 30 });
    const delivered = await send(url, { ...post, headers: known });
    expect(delivered.headers.get("ratelimit")).toContain('"sender/10s";r=169');
  });

  it("limits requests for made-up senders by address", async () => {
    const { send } = workerWith(webhooks, bindings);
    const deliver = (index: number) => send(`https://hooks.example/webhooks/x${index}`, post);
    expect(await countStatuses(31, deliver)).toEqual({ 200: 30, 429: 1 });
  });

  it("exempts a sender's network from the stranger's limit", async () => {
    const { send } = workerWith(webhooks, bindings);
    const deliver = () => send("https://hooks.example/webhooks/shop", { ...post, ip: "192.0.2.7" });
    expect(await countStatuses(31, deliver)).toEqual({ 200: 31 });
  });
});

describe("docs/guides/moving.md", () => {
  it.each([
    { from: "@upstash/ratelimit", config: fromUpstash, path: "/items", limit: 10 },
    { from: "hono-rate-limiter", config: fromHono, path: "/api/items", limit: 100 },
    { from: "nginx", config: fromNginx, path: "/api/items", limit: 21, status: 503 },
    { from: "Envoy", config: fromEnvoy, path: "/", limit: 100 },
    { from: "Envoy, the partner", config: fromEnvoy, path: "/", limit: 1000, ip: "192.0.2.7" },
    { from: "Kong", config: fromKong, path: "/search", limit: 5 },
    { from: "Traefik", config: fromTraefik, path: "/api/items", limit: 50 },
    { from: "Cloudflare", config: fromCloudflare, path: "/login", method: "POST", limit: 5 },
  ])("admits as many requests at once as before: $from", async (each) => {
    const { config, path, limit, status = 429, ...request } = each;
    const { send } = workerWith(config);
    const one = () => send(`https://api.example.com${path}`, request);
    expect(await countStatuses(limit + 1, one)).toEqual({ 200: limit, [status]: 1 });
  });

  it.each([
    { from: "nginx", config: fromNginx, seconds: 1, added: 10 },
    { from: "Traefik", config: fromTraefik, seconds: 3, added: 5 },
  ])("adds the rate of a bucket: $from", async ({ config, seconds, added }) => {
    const { send } = workerWith(config);
    const one = () => send("https://api.example.com/api/items");
    await countStatuses(60, one);
    vi.setSystemTime(Date.now() + seconds * 1000);
    expect((await countStatuses(60, one))[200]).toBe(added);
  });

  it("counts everything below a path, but no longer name", async () => {
    const { send } = workerWith(fromKong);
    const policies = async (path: string) =>
      (await send(`https://api.example.com${path}`)).headers.has("ratelimit-policy");
    const paths = ["/search", "/search/", "/search/shoes", "/searches"];
    expect(await Promise.all(paths.map(policies))).toEqual([true, true, true, false]);
  });

  /** Sends thirty wrong passwords at once. The origin answers when all that pass have arrived. */
  async function guessAtOnce(config: Config) {
    const answer = Promise.withResolvers<void>();
    const { reached, send } = workerWith(config, {}, async () => {
      await answer.promise;
      return new Response("", { status: 401 });
    });
    const url = "https://shop.example/login";
    const guess = () => send(url, { method: "POST" });
    // A late call of another test in this isolate may get here too.
    const passed = () => reached.mock.calls.filter(([request]) => request.url === url).length;
    const guesses = Array.from({ length: 30 }, guess);
    const denied = guesses.map((each) => each.then(({ status }) => status === 429));
    await vi.waitFor(async () => {
      const pending = Promise.resolve(false);
      const ended = await Promise.all(denied.map((each) => Promise.race([each, pending])));
      expect(passed() + ended.filter(Boolean).length).toBe(30);
    }, PATIENCE);
    answer.resolve();
    await Promise.all(guesses);
    return passed();
  }

  it("lets ten of thirty wrong passwords pass at once, and all of them without a reserve", async () => {
    expect(await guessAtOnce(fromExpress)).toBe(10);
    vi.setSystemTime(Date.now() + DAY);
    const [rule] = (inputOf(fromExpress) as ConfigInput).rules as RuleInput[];
    const rules = [{ ...rule, count: { status: [400, 401, 403, 404] } }] as RuleInput[];
    expect(await guessAtOnce(defineConfig({ rules }))).toBe(30);
  });

  it("gives the quota of a right password back", async () => {
    const { send } = workerWith(fromExpress);
    const login = () => send("https://shop.example/login", { method: "POST" });
    expect(await countStatuses(20, login)).toEqual({ 200: 20 });
  });

  it("limits Envoy's partner to the strictest rule without the exception", async () => {
    const [all, partner] = (inputOf(fromEnvoy) as ConfigInput).rules as RuleInput[];
    const rules = [{ ...all, match: {} }, partner] as RuleInput[];
    const { send } = workerWith(defineConfig({ rules }));
    const one = () => send("https://api.example.com/", { ip: "192.0.2.7" });
    expect(await countStatuses(101, one)).toEqual({ 200: 100, 429: 1 });
  });
});

describe("docs/guides/model-server.md", () => {
  /** A model server whose answers begin at once, and end when a test says so. */
  function modelServerWith() {
    const answers: (() => void)[] = [];
    const { reached, send } = workerWith(modelServer, {}, () => {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const writer = writable.getWriter();
      const begun = writer.write(new TextEncoder().encode("data: begin\n\n"));
      answers.push(() => void begun.then(() => writer.close()));
      return new Response(readable);
    });
    const ask = (key: string, ip?: string) =>
      send("https://model.example/v1/chat/completions", {
        method: "POST",
        body: "{}",
        headers: { authorization: `Bearer ${key}` },
        ...(ip && { ip }),
      });
    /** Ends an answer, and reads it to its end. */
    const end = async (response: Response) => {
      answers.shift()?.();
      return await response.text();
    };
    return { reached, ask, end };
  }

  it("lets an API key have four open answers, also streams, and a fifth when one has ended", async () => {
    const { reached, ask, end } = modelServerWith();
    const open = [await ask("a"), await ask("a"), await ask("a"), await ask("a")];
    expect(open.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const fifth = ask("a");
    open.push(await ask("b"));
    expect(reached).toHaveBeenCalledTimes(5);
    expect(await end(open.shift() as Response)).toBe("data: begin\n\n");
    const next = await fifth;
    expect(next.status).toBe(200);
    expect(next.headers.get("server-timing")).toContain("weir-wait");
    open.push(next);
    for (const each of open) await end(each);
  });

  it("answers 503 to every key when 32 answers are open", async () => {
    const { reached, ask, end } = modelServerWith();
    const open = [];
    for (let at = 0; at < 32; at++) open.push(await ask(`key-${at % 8}`, `203.0.113.${at % 8}`));
    expect(open.map(({ status }) => status)).toEqual(Array(32).fill(200));
    const busy = await ask("another", "203.0.113.99");
    expect(busy.status).toBe(503);
    expect(await busy.json()).toEqual({ error: "All workers are busy. Try again." });
    expect(reached).toHaveBeenCalledTimes(32);
    for (const each of open) await end(each);
    await vi.waitFor(async () => {
      const next = await ask("another", "203.0.113.99");
      expect(next.status).toBe(200);
      await end(next);
    }, PATIENCE);
  });

  it("limits made-up keys by address", async () => {
    const { ask, end } = modelServerWith();
    const open = [];
    for (let at = 0; at < 16; at++) open.push(await ask(`made-up-${at}`));
    const denied = await ask("made-up-16");
    expect(await denied.json()).toMatchObject({ "violated-policies": ["address/concurrent"] });
    for (const each of open) await end(each);
  });
});

describe("docs/guides/queue.md", () => {
  it("lets ten requests wait for the next second, and denies the others", async () => {
    const { send } = workerWith(queue);
    // The next window begins in 20 ms.
    vi.setSystemTime(Date.now() - 20);
    const sent = Array.from({ length: 21 }, () => send("https://api.example.com/api/items"));
    await vi.waitFor(async () => {
      // Only a denied request is answered at once, beside the ten that pass.
      const pending = Symbol();
      const ends = await Promise.all(sent.map((each) => Promise.race([each, pending])));
      expect(ends.filter((each) => each !== pending)).toHaveLength(11);
    }, PATIENCE);
    vi.setSystemTime(Date.now() + 20);
    const answers = await Promise.all(sent);
    const waited = answers.filter(({ headers }) => headers.has("server-timing"));
    expect(waited.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(1);
  });

  it("lets a third report wait until one of two has ended", async () => {
    const answers: PromiseWithResolvers<Response>[] = [];
    const { reached, send } = workerWith(queue, {}, () => {
      const answer = Promise.withResolvers<Response>();
      answers.push(answer);
      return answer.promise;
    });
    const open = Array.from({ length: 3 }, () => send("https://api.example.com/reports/1"));
    await vi.waitFor(() => expect(answers).toHaveLength(2), PATIENCE);
    answers[0]?.resolve(new Response());
    await vi.waitFor(() => expect(answers).toHaveLength(3), PATIENCE);
    for (const each of answers) each.resolve(new Response());
    const timings = (await Promise.all(open)).map(({ headers }) => headers.has("server-timing"));
    expect(timings.filter(Boolean)).toHaveLength(1);
    expect(reached).toHaveBeenCalledTimes(3);
  });
});

describe("docs/guides/customers.md, many sites", () => {
  it("counts a visitor on each site separately, with the limits of the site's customer", async () => {
    const { send } = workerWith(agency);
    const visit = (host: string) => () => send(`https://${host}/`);
    expect(await countStatuses(301, visit("bakery.example"))).toEqual({ 200: 300, 429: 1 });
    expect(await countStatuses(1, visit("tickets.museum.example"))).toEqual({ 200: 1 });
    const large = await visit("shop.example")();
    expect(large.headers.get("ratelimit-policy")).toBe(
      '"visitor";q=1200;w=60, "site";q=60000;w=60',
    );
  });

  it("limits logins on each site", async () => {
    const { send } = workerWith(agency);
    const login = (host: string) => () =>
      send(`https://${host}/wp-login.php`, { method: "POST", body: "pwd=1" });
    expect(await countStatuses(11, login("tickets.museum.example"))).toEqual({ 200: 10, 429: 1 });
    expect(await countStatuses(1, login("bakery.example"))).toEqual({ 200: 1 });
  });

  it("gives a made-up host no limits of its own", async () => {
    const { send } = workerWith(agency);
    const visit = (index: number) => send(`https://made-up-${index}.example/`);
    expect(await countStatuses(61, visit)).toEqual({ 200: 60, 429: 1 });
  });

  it("forwards each request to the origin of its host", async () => {
    const api = vi.fn((request: Request) => new Response(request.url));
    const { reached, send } = workerWith(agency, { SHOP_API: { fetch: api } });
    await send("https://shop.example/cart");
    await send("https://tickets.museum.example/today");
    expect(reached.mock.calls.map(([{ url }]) => url)).toEqual([
      "https://shop.example/cart",
      "https://museum-origin.hosting.example/today",
    ]);
    const answer = await send("https://API.shop.example/items");
    expect(await answer.text()).toBe("https://api.shop.example/items");
    expect(answer.headers.get("ratelimit-policy")).toContain("q=1200");
    expect(reached).toHaveBeenCalledTimes(2);
  });
});

describe("docs/guides/recipes.md, uploads", () => {
  const bindings = { JWT_SECRET };
  const url = "https://files.example/uploads/a.mp4";

  it("denies the sixth upload in ten seconds, without reading its body", async () => {
    const { reached, send } = workerWith(uploads, bindings, async (request) => {
      await request.arrayBuffer();
      return new Response(null, { status: 201 });
    });
    const headers = { ...(await tokenOf("ann")), "content-length": "10240" };
    const upload = () => send(url, { method: "PUT", body: "x".repeat(10_240), headers });
    expect(await countStatuses(5, upload)).toEqual({ 201: 5 });
    const pull = vi.fn();
    const body = new ReadableStream({ pull }, { highWaterMark: 0 });
    const denied = await send(url, { method: "PUT", body, headers });
    expect(denied.status).toBe(429);
    expect(pull).not.toHaveBeenCalled();
    expect(reached).toHaveBeenCalledTimes(5);
  });

  it("charges the stated length before the upload, and denies when the day's volume is used", async () => {
    const { reached, send } = workerWith(uploads, bindings);
    const bob = await tokenOf("bob");
    const upload = (mebibytes: number, user = bob) => {
      const headers = { ...user, "content-length": String(mebibytes * 1_048_576) };
      return send(url, { method: "PUT", body: "x", headers });
    };
    const first = await upload(500);
    expect(first.headers.get("ratelimit")).toMatch(/"upload-bytes";r=1623195648;t=86400$/);
    // Without a length, the upload costs 512 MiB.
    expect((await send(url, { method: "PUT", body: "x", headers: bob })).status).toBe(200);
    expect((await upload(512)).status).toBe(200);
    expect((await upload(512)).status).toBe(200);
    expect((await upload(13)).status).toBe(429);
    expect(reached).toHaveBeenCalledTimes(4);
    expect((await upload(13, await tokenOf("cid"))).status).toBe(200);
    vi.setSystemTime(Date.now() + DAY);
    expect((await upload(13)).status).toBe(200);
  });
});

describe("docs/functions.md, costs", () => {
  const post = (
    send: ReturnType<typeof workerWith>["send"],
    path: string,
    body: string,
    ip = "203.0.113.1",
  ) =>
    send(`https://api.example.com${path}`, {
      method: "POST",
      body,
      ip,
      headers: { "content-length": String(body.length) },
    });
  const left = (response: Response, rule: string) =>
    Number(new RegExp(`"${rule}";r=(\\d+)`).exec(response.headers.get("ratelimit") ?? "")?.[1]);

  it("charges a query by its depth, and the queries of a batch together", async () => {
    const { send, reached } = workerWith(batches);
    const flat = { query: "{ a b c }" };
    const deep = { query: "{ a { b { c { d } } } }" };
    expect(left(await post(send, "/graphql", JSON.stringify(flat)), "graphql")).toBe(999);
    expect(left(await post(send, "/graphql", JSON.stringify([deep, flat])), "graphql")).toBe(982);
    expect(await reached.mock.calls[1]?.[0].text()).toBe(JSON.stringify([deep, flat]));
  });

  it.each<[name: string, query: string, depth: number]>([
    ["comments", "{ a #}}}\n{ b #}\r{ c } } }", 3],
    ["a comment before it", "#}}}}}}\n{ a { b { c } } }", 3],
    ["braces in strings", '{ a(s: "}}\\"}") { b(s: "{{") { c } } }', 3],
    ["braces in block strings", '{ a(s: """ } " }} \\""" } """) { b(s: """""") { c } } }', 3],
    ["a comment that looks like a string", '{ a #"\n { b #"""\n { c } } }', 3],
    ["a string that looks like a comment", '{ a(s: "#") { b(s: """#""") { c } } }', 3],
    ["a string without an end", '{ a { b(s: "} } }\n { c } } }', 3],
    ["a block string without an end", '{ a { b { c """ } } }', 3],
    ["too many closing braces", "} } } { a { b { c } } } } }", 3],
    ["no closing braces", "{ a { b { c", 3],
    ["a chain of fragments", "{ ...A } fragment A on T { a { ...B } } fragment B on T { b }", 4],
    ["no braces", "", 1],
  ])("charges the depth of a query with %s", async (_, query, depth) => {
    const { send } = workerWith(batches);
    const response = await post(send, "/graphql", JSON.stringify({ query }));
    expect(left(response, "graphql")).toBe(1000 - depth ** 2);
  });

  it.each([
    ["an empty batch", "[]"],
    ["an empty query", '{"query":""}'],
    ["a query with only a comment", '{"query":"#}}}"}'],
  ])("charges at least 1 for %s", async (_, body) => {
    const { send } = workerWith(batches);
    expect(left(await post(send, "/graphql", body), "graphql")).toBe(999);
  });

  it.each([
    ["opening quotes", '"'],
    ["block strings", '"""'],
    ["escaped block strings", '"""\\"""'],
    ["backslashes", '"\\'],
    ["comments", "#"],
    ["braces", "{"],
  ])("reads a long query of %s", async (_, part) => {
    const { send } = workerWith(batches);
    vi.spyOn(console, "error").mockImplementation(() => {});
    const query = part.repeat(45_000 / part.length);
    const response = await post(send, "/graphql", JSON.stringify({ query }));
    expect(response.status).toBe(200);
    expect(left(response, "graphql")).toBeGreaterThanOrEqual(600);
  });

  it("charges each message of a JSON-RPC batch, and denies a batch that does not fit", async () => {
    const { send } = workerWith(batches);
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call" };
    expect(left(await post(send, "/mcp", JSON.stringify(call)), "calls")).toBe(99);
    const batch = JSON.stringify(Array(40).fill(call));
    expect(left(await post(send, "/mcp", batch), "calls")).toBe(59);
    expect(left(await post(send, "/rpc", batch), "calls")).toBe(19);
    expect((await post(send, "/rpc", batch)).status).toBe(429);
    expect(left(await post(send, "/rpc", JSON.stringify(call)), "calls")).toBe(18);
  });

  it.each([
    ["is no JSON", "[1,"],
    ["is too long", JSON.stringify("x".repeat(100_001))],
  ])("charges the maximum for a body that %s", async (_, body) => {
    const { send } = workerWith(batches);
    vi.spyOn(console, "error").mockImplementation(() => {});
    expect(left(await post(send, "/rpc", body), "calls")).toBe(50);
    expect(left(await post(send, "/graphql", body), "graphql")).toBe(600);
    expect((await post(send, "/rpc", "[]", "203.0.113.2")).status).toBe(200);
  });
});

describe("docs/guides/customers.md, plans", () => {
  const url = "https://api.example.com/v1/items";
  /** The entries of the KV namespace. Their names have the hashes that `sha256sum` prints for the keys. */
  const ENTRIES: Record<string, object> = {
    // The hash of key-of-acme.
    "key:689febd264f8b977e29c0fdb75f839eb248ba07d1561b14f2b95f42756943245": {
      id: "acme",
      plan: "pro",
    },
    // The hash of second-key-of-acme.
    "key:4954f697af56eb586df122c99838e9df08399046bb281b153f1855f70e4f63ba": {
      id: "acme",
      plan: "pro",
    },
    // The hash of key-of-bob.
    "key:808a1d81b5de08d72083995df738947d519d230a20c236003268f0f4b65ee475": {
      id: "bob",
      plan: "free",
    },
    // The hash of key-of-dan. Only one test uses this key, because the key's window of 30 days
    // spans the days of several tests.
    "key:4e913e35f9933a915f6f793e9e3a9e63075f2d247f4b98e79b3e5ee7e1e2f2c4": {
      id: "dan",
      plan: "free",
    },
    // The hash of key-of-cid.
    "key:ae71ee0137675c2aed40aa14c810e367dbe8319973aadbfdedd815db1778adc5": {
      id: "cid",
      plan: "trial",
    },
  };

  function createPlans() {
    return { get: vi.fn(async (name: string) => ENTRIES[name] ?? null) };
  }

  function send(worker: ReturnType<typeof workerWith>, key: string | undefined, ip?: string) {
    return () =>
      worker.send(url, {
        headers: key === undefined ? {} : { "x-api-key": key },
        ...(ip && { ip }),
      });
  }

  it("gives each customer the limits of the plan, for all of the customer's keys together", async () => {
    const worker = workerWith(saas, { PLANS: createPlans() });
    expect(await countStatuses(61, send(worker, "key-of-bob"))).toEqual({ 200: 60, 429: 1 });
    await send(worker, "key-of-acme")();
    const { headers } = await send(worker, "second-key-of-acme")();
    expect(headers.get("ratelimit-policy")).toContain(
      '"api/1m";q=600;w=60, "api/1h";q=10000;w=3600',
    );
    expect(headers.get("ratelimit")).toMatch(/"api\/1m";r=598;.*"api\/1h";r=9998;/);
    expect(await countStatuses(31, send(worker, "key-of-cid"))).toEqual({ 200: 30, 429: 1 });
  });

  it("marks the requests that the plan does not include, and counts few denied ones", async () => {
    const told: (string | null)[] = [];
    const worker = workerWith(saas, { PLANS: createPlans() }, async ({ headers }) => {
      told.push(headers.get("weir-over"), headers.get("weir-remaining"));
      return new Response();
    });
    let minutes = 0;
    const inNewMinute = () => vi.setSystemTime(today - 7 * DAY + ++minutes * 60_000);
    while (minutes < 16) {
      await countStatuses(65, send(worker, "key-of-dan"));
      inNewMinute();
    }
    // Each minute admits 60 requests. The store denies the next one, and the isolate all others. So 976 of the 1000
    // requests are used.
    expect(told.at(-1)).toMatch(/^"included";r=25;t=\d+$/);
    await countStatuses(25, send(worker, "key-of-dan"));
    expect(told.slice(-4)).toEqual([
      null,
      expect.stringMatching(/^"included";r=0;/),
      "included",
      expect.stringMatching(/^"included";r=0;/),
    ]);
  });

  it("counts requests with made-up keys and without a key by their address", async () => {
    const worker = workerWith(saas, { PLANS: createPlans() });
    const madeUp = (index: number) => send(worker, `made-up-${index}`, "203.0.113.9")();
    expect(await countStatuses(20, madeUp)).toEqual({ 200: 20 });
    const without = send(worker, undefined, "203.0.113.9");
    expect(await countStatuses(11, without)).toEqual({ 200: 10, 429: 1 });
  });

  it("looks up hashes only, and counts a customer by address while KV fails", async () => {
    const plans = createPlans();
    const worker = workerWith(saas, { PLANS: plans });
    await send(worker, "key-of-acme")();
    for (const [name] of plans.get.mock.calls) expect(name).toMatch(/^key:[0-9a-f]{64}$/);
    expect(plans.get).toHaveBeenCalledTimes(2);
    plans.get.mockRejectedValue(new Error("KV is down"));
    vi.spyOn(console, "error").mockImplementation(() => {});
    const response = await send(worker, "key-of-acme", "203.0.113.10")();
    expect(response.headers.get("ratelimit-policy")).toContain('"api";q=30;w=60');
  });
});

describe("docs/guides/own-limits.md", () => {
  const url = "https://api.example.com/v1/items";
  const policiesOf = ({ headers }: Response) => headers.get("ratelimit-policy");
  const bearer = async (payload: Record<string, unknown>) => ({
    authorization: `Bearer ${await sign(payload, JWT_SECRET, "HS256")}`,
  });

  it("gives each API key its number in KV, with one lookup, and unknown keys the default", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    // The hash of key-of-acme.
    const name = "key:689febd264f8b977e29c0fdb75f839eb248ba07d1561b14f2b95f42756943245";
    const get = vi.fn(async (entry: string) => (entry === name ? { rpm: 600 } : null));
    const { send } = workerWith(plansInKv, { PLANS: { get } });
    const ask = (key: string) => send(url, { headers: { "x-api-key": key } });
    expect(policiesOf(await ask("key-of-acme"))).toContain('"api";q=600;w=60');
    expect(policiesOf(await ask("key-of-acme"))).toContain('"api";q=600;w=60');
    expect(policiesOf(await ask("made-up"))).toContain('"api";q=60;w=60');
    expect(get).toHaveBeenCalledTimes(2);
    expect(policiesOf(await send(url))).toContain('"api";q=60;w=60');
    expect(get).toHaveBeenCalledTimes(2);
  });

  it("looks up only customers with a contract in D1", async () => {
    const first = vi.fn(async () => 5_000_000);
    const bind = vi.fn(() => ({ first }));
    const bindings = { JWT_SECRET, DB: { prepare: () => ({ bind }) } };
    const { send } = workerWith(contracts, bindings);
    const ask = async (payload: Record<string, unknown>) =>
      policiesOf(await send(url, { headers: await bearer(payload) }));
    expect(await ask({ sub: "ann", plan: "free" })).toContain('"month";q=1000;');
    expect(bind).not.toHaveBeenCalled();
    expect(await ask({ sub: "acme", plan: "contract" })).toContain('"month";q=5000000;');
    expect(bind.mock.calls).toEqual([["acme"]]);
  });

  it("reads two numbers from a token, and gives anonymous clients the defaults", async () => {
    const { send } = workerWith(claims, { JWT_SECRET });
    const limits = { rpm: 600, monthly: 99_000 };
    const headers = await bearer({ sub: "acme", limits });
    const own = policiesOf(await send(url, { headers }));
    expect(own).toMatch(/"api\/1m";q=600;w=60, "api\/month";q=99000;/);
    expect(policiesOf(await send(url))).toMatch(/"api\/1m";q=60;w=60, "api\/month";q=1000;/);
  });
});

describe("docs/guides/recipes.md, deny lists", () => {
  const url = "https://shop.example/";
  const facts = { country: "DE", asn: 64499, verifiedBotCategory: "" };

  it("denies abusive networks with 403, and does not count their requests", async () => {
    const { send, reached } = workerWith(denyList);
    for (const ip of ["198.51.100.200", "203.0.113.66", "2001:db8:bad:7::1"]) {
      const response = await send(url, { ip, facts });
      expect(response.status).toBe(403);
      expect(await response.text()).toBe("Forbidden. Contact abuse@example.com.");
      expect(response.headers.get("ratelimit-policy")).toBe('"abusive-networks";q=0;w=86400');
    }
    expect(reached).not.toHaveBeenCalled();
    expect((await send(url, { ip: "203.0.113.67", facts })).headers.get("ratelimit")).toContain(
      '"site";r=299',
    );
  });

  it("denies registrations from servers, and from unknown operators", async () => {
    const { send } = workerWith(denyList);
    const register = (client?: object) =>
      send("https://shop.example/register", { method: "POST", ...(client && { facts: client }) });
    expect((await register({ ...facts, asn: 64500 })).status).toBe(403);
    expect((await register()).status).toBe(403);
    expect((await register(facts)).status).toBe(200);
    expect((await send(url, { facts: { ...facts, asn: 64500 } })).status).toBe(200);
  });

  it("counts no verified search engine, and other crawlers together", async () => {
    const { send } = workerWith(denyList);
    const policies = async (verifiedBotCategory: string) => {
      const { headers } = await send(url, { facts: { ...facts, verifiedBotCategory } });
      return (headers.get("ratelimit") ?? "").match(/"[a-z-]+"/g);
    };
    expect(await policies("Search Engine Crawler")).toBeNull();
    expect(await policies("AI Crawler")).toEqual(['"site"', '"ai-crawlers"']);
    expect(await policies("")).toEqual(['"site"']);
  });
});

describe("docs/guides/recipes.md, fast reads, exact writes", () => {
  const url = "https://api.example/items";

  it("denies reads after the limit and at most one more", async () => {
    const { reached, send } = workerWith(readsAndWrites);
    const first = await send(url);
    expect(first.headers.get("ratelimit-policy")).toBe('"reads";q=600;w=60');
    await countStatuses(610, () => send(url));
    expect([600, 601]).toContain(reached.mock.calls.length);
    expect((await send(url, { method: "HEAD" })).status).toBe(429);
  });

  it("denies the first write above the limit, whatever its method", async () => {
    const { send } = workerWith(readsAndWrites);
    const methods = ["POST", "PUT", "PATCH", "DELETE"];
    const write = (index: number) => send(url, { method: methods[index % 4] as string });
    expect(await countStatuses(61, write)).toEqual({ 200: 60, 429: 1 });
    expect((await send(url)).status).toBe(200);
  });

  it("lets a read pass, but no write, while the store is silent", async () => {
    const { promise: answer, reject: fail } = Promise.withResolvers<never>();
    const called = vi.fn(() => answer);
    const silent = new Proxy({}, { get: () => called });
    const { reached, send } = workerWith(readsAndWrites, {
      COUNTERS: { getByName: () => silent },
    });
    const write = send(url, { method: "POST" });
    await vi.waitFor(() => expect(called).toHaveBeenCalled(), PATIENCE);
    expect((await send(url)).status).toBe(200);
    expect(reached.mock.calls.map(([{ method }]) => method)).toEqual(["GET"]);
    fail(new Error("The store has failed."));
    expect((await write).status).toBe(503);
  });
});

describe("docs/guides/recipes.md, logins", () => {
  const RIGHT = "the right password";

  function createLogin() {
    const { send, reached } = workerWith(login, {}, async (request) => {
      const { password } = await request.json<{ password?: string }>();
      return new Response(null, { status: password === RIGHT ? 200 : 401 });
    });
    const attempt = (email: string, password: string, ip: string) => {
      const body = JSON.stringify({ email, password });
      const headers = { "content-length": String(body.length) };
      return send("https://app.example.com/login", { method: "POST", body, headers, ip });
    };
    return { attempt, reached };
  }

  it("denies the sixth guess of an address, whatever the spelling of the account", async () => {
    const { attempt } = createLogin();
    const guess = (index: number) =>
      attempt(index % 2 ? "Ann@Example.com " : "ann@example.com", `guess ${index}`, "203.0.113.1");
    expect(await countStatuses(6, guess)).toEqual({ 401: 5, 429: 1 });
  });

  it("denies the sixth guess also around the end of 15 minutes", async () => {
    const { attempt } = createLogin();
    const guess = () => attempt("ann@example.com", "guess", "203.0.113.1");
    vi.setSystemTime(Date.now() + 898_000);
    expect(await countStatuses(5, guess)).toEqual({ 401: 5 });
    vi.setSystemTime(Date.now() + 4000);
    expect(await countStatuses(5, guess)).toEqual({ 429: 5 });
  });

  it("lets the owner of the account log in from another address", async () => {
    const { attempt } = createLogin();
    const guess = () => attempt("ann@example.com", "guess", "203.0.113.1");
    expect(await countStatuses(10, guess)).toEqual({ 401: 5, 429: 5 });
    expect((await attempt("ann@example.com", RIGHT, "198.51.100.7")).status).toBe(200);
  });

  it("does not count logins with the right password as failures", async () => {
    const { attempt } = createLogin();
    const succeed = () => attempt("ann@example.com", RIGHT, "203.0.113.1");
    expect(await countStatuses(30, succeed)).toEqual({ 200: 30 });
    expect(await countStatuses(1, succeed)).toEqual({ 429: 1 });
  });

  it("denies an address that tries many accounts", async () => {
    const { attempt } = createLogin();
    const tryList = (index: number) =>
      attempt(`user-${index}@example.com`, "123456", "203.0.113.1");
    const counts: Record<number, number> = {};
    for (let minute = 0; minute < 2; minute++) {
      for (const [status, count] of Object.entries(await countStatuses(30, tryList))) {
        counts[Number(status)] = (counts[Number(status)] ?? 0) + count;
      }
      vi.setSystemTime(Date.now() + 60_000);
    }
    expect(counts).toEqual({ 401: 50, 429: 10 });
  });

  it("logs an attack on one account from many addresses, and denies nobody", async () => {
    const { attempt } = createLogin();
    const log = vi.spyOn(console, "log").mockImplementation(() => {});
    const guess = (index: number) => attempt("ann@example.com", "guess", `198.51.100.${index}`);
    expect(await countStatuses(51, guess)).toEqual({ 401: 51 });
    expect(log.mock.calls.flat().join()).toContain('"mode":"shadow","rule":"login-watch"');
  });

  it("counts a login by address if its body is not JSON, and forwards it", async () => {
    const { send, reached } = workerWith(login, {}, () => new Response(null, { status: 401 }));
    vi.spyOn(console, "error").mockImplementation(() => {});
    const body = "email=ann&password=x";
    const headers = { "content-length": String(body.length) };
    const guess = () => send("https://app.example.com/login", { method: "POST", body, headers });
    expect(await countStatuses(6, guess)).toEqual({ 401: 5, 429: 1 });
    expect(await reached.mock.calls[0]?.[0].text()).toBe(body);
  });
});

describe("docs/llm.md", () => {
  const url = "https://llm.example.com/v1/chat/completions";
  const END = "data: [DONE]\n\n";
  /** A call whose estimate is 5,010 tokens. */
  const call = JSON.stringify({ max_tokens: 5000, stream: true, a: "" });
  const stream = (...events: object[]) =>
    new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + END, {
      headers: { "content-type": "text/event-stream" },
    });

  it.each<[name: string, answer: () => Response, charged: number]>([
    ["JSON", () => Response.json({ usage: { total_tokens: 15_000 } }), 15_000],
    ["a stream", () => stream({ usage: null }, { usage: { total_tokens: 7 } }), 7],
    ["a stream without usage", () => stream({ usage: null }), 5010],
    ["an error", () => Response.json({ error: {} }, { status: 529 }), 0],
    ["more than max", () => Response.json({ usage: { total_tokens: 21_000 } }), 20_000],
  ])("reserves an estimate, and settles it by %s", async (name, answer, charged) => {
    const { send } = workerWith(llm, { JWT_SECRET }, answer);
    const headers = await tokenOf(name);
    const response = await send(url, { method: "POST", body: call, headers });
    expect(response.headers.get("ratelimit")).toContain('"user-tokens/1m";r=14990');
    await response.text();
    const limits = createService();
    const key = { "jwt:sub": name };
    await vi.waitFor(async () => {
      expect(await limits.getValue("user-tokens", { key })).toMatchObject([
        { remaining: 20_000 - charged },
        { remaining: 500_000 - charged },
      ]);
    }, PATIENCE);
  });

  it("denies calls at once whose estimates exceed the limit together", async () => {
    const { send, reached } = workerWith(llm, { JWT_SECRET });
    const headers = await tokenOf("ann");
    const ask = () => send(url, { method: "POST", body: call, headers });
    const answers = await Promise.all(Array.from({ length: 8 }, ask));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429, 429, 429]);
    expect(reached).toHaveBeenCalledTimes(3);
    const other = { method: "POST", body: call, headers: await tokenOf("bob") };
    expect((await send(url, other)).status).toBe(200);
  });

  it("bounds the calls of a user", async () => {
    const answer = () => Response.json({ usage: { total_tokens: 9 } });
    const { send } = workerWith(llm, { JWT_SECRET }, answer);
    const headers = await tokenOf("cid");
    const ask = async () => {
      const response = await send(url, { method: "POST", body: "{}", headers });
      // The tokens are settled when the client has read the answer.
      await response.text();
      return response;
    };
    expect(await countStatuses(21, ask)).toEqual({ 200: 20, 429: 1 });
  });

  it("shares the provider's budget among programs, and gives unused tokens back", async () => {
    const limits = createService();
    // Each shard has 100,000 tokens, so it admits only one of these calls.
    const results = [];
    for (let call = 0; call < 40; call++)
      results.push(await limits.limit("tokens", { cost: 60_000 }));
    const admitted = results.filter(({ ok }) => ok).length;
    expect(admitted).toBeGreaterThan(5);
    expect(admitted).toBeLessThanOrEqual(10);
    expect(await limits.limit("tokens", { cost: -50_000 })).toMatchObject({ ok: true });
    expect(await limits.limit("tokens", { cost: 100_001 })).toMatchObject({ ok: false });
  });

  it("lets jobs reserve tokens of the next four hours, but no more", async () => {
    const limits = createService();
    const job = { key: "nightly", cost: 100_000, reserve: true };
    expect(await limits.limit("batch", job)).toEqual({ ok: true, quotas: [expect.anything()] });
    for (let hours = 1; hours <= 4; hours++) {
      expect(await limits.limit("batch", job)).toMatchObject({
        ok: true,
        retryAfterMs: hours * 3_600_000,
      });
    }
    expect(await limits.limit("batch", job)).toMatchObject({ ok: false });
  });

  it("does not apply the rules for programs to HTTP requests", async () => {
    const { send } = workerWith(llm, { JWT_SECRET });
    const { headers } = await send(url, { method: "POST" });
    expect(headers.get("ratelimit-policy")).not.toMatch(/"tokens"|batch/);
  });

  function createService() {
    class Limits extends WeirService {
      readonly config = llm;
    }
    return new Limits(createExecutionContext(), { ...env });
  }
});

describe("docs/functions.md, MCP servers", () => {
  /** Returns what is left of the limits of a tool after a call that names it in this spelling. */
  function callsWith({ send }: ReturnType<typeof workerWith>) {
    return async (name?: string, ip = "203.0.113.1") => {
      const headers = {
        "mcp-method": "tools/call",
        ...(name !== undefined && { "mcp-name": name }),
      };
      const { headers: fields } = await send("https://mcp.example/mcp", {
        method: "POST",
        body: "{}",
        headers,
        ip,
      });
      return /"tool";r=(\d+)/.exec(fields.get("ratelimit") ?? "")?.[1];
    };
  }

  it("counts a name in base64 and in plain text as one tool", async () => {
    const call = callsWith(workerWith(tools));
    expect(await call("search")).toBe("19");
    expect(await call("=?base64?c2VhcmNo?=")).toBe("18");
    expect(await call("run_report")).toBe("19");
    expect(await call("=?base64?Z3LDtsOfZV9tZXNzZW4=?=")).toBe("19");
    expect(await call("=?base64?Z3LDtsOfZV9tZXNzZW4=?=")).toBe("18");
  });

  it.each([
    ["names no tool", undefined],
    ["names an unknown tool", "search2"],
    ["names a tool in another case", "Search"],
    ["writes the markers in another case", "=?BASE64?c2VhcmNo?="],
    ["has base64 that cannot be read", "=?base64?%%%?="],
    ["names two tools", "search, run_report"],
  ])("counts a call that %s together with all other unknown ones", async (_, name) => {
    const call = callsWith(workerWith(tools));
    await call("unknown");
    expect(await call(name)).toBe("18");
    expect(await call("search")).toBe("19");
  });
});

describe("docs/functions.md, responses", () => {
  const call = (id: unknown) => ({ jsonrpc: "2.0", id, method: "tools/list" });
  const post = (send: ReturnType<typeof workerWith>["send"], body: string) =>
    send("https://api.example.com/mcp", {
      method: "POST",
      body,
      headers: { "content-length": String(body.length) },
    });

  it("answers JSON-RPC calls over the limit with an error that has their id", async () => {
    const { send } = workerWith(denials);
    const one = () => post(send, JSON.stringify(call(7)));
    expect(await countStatuses(61, one)).toEqual({ 200: 60, 429: 1 });
    const error = { code: -32000, message: "Too many requests" };
    expect(await (await one()).json()).toMatchObject({ jsonrpc: "2.0", id: 7, error });
    const batch = await post(send, JSON.stringify([call("a"), call({}), "odd"]));
    expect(((await batch.json()) as { id: unknown }[]).map(({ id }) => id)).toEqual([
      "a",
      null,
      null,
    ]);
    expect(await (await post(send, "{")).json()).toMatchObject({ id: null });
    const long = JSON.stringify(Array.from({ length: 2000 }, (_, id) => call(id)));
    expect(await (await post(send, long)).json()).toMatchObject({ id: null });
  });

  it("answers browsers with a page in their language", async () => {
    const { send } = workerWith(denials);
    const visit = (language: string) =>
      send("https://www.example.com/", { headers: { "accept-language": language } });
    expect(await countStatuses(301, () => visit("de-CH,de;q=0.9"))).toEqual({ 200: 300, 429: 1 });
    const page = await visit("de-CH,de;q=0.9");
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(await page.text()).toContain("Zu viele Anfragen");
    expect(await (await visit("fr<script>")).text()).toContain("Too many requests");
  });
});

describe("docs/replay.md", () => {
  it("denies logins over the limit, and no search while its rule is in shadow mode", async () => {
    const { send } = workerWith(tried);
    const login = () => send("https://shop.example/login", { method: "POST" });
    expect(await countStatuses(12, login)).toEqual({ 200: 10, 429: 2 });
    const search = () => send("https://shop.example/search?q=shoes");
    expect(await countStatuses(35, search)).toEqual({ 200: 35 });
  });
});

describe("docs/guides/webhooks.md", () => {
  const known = { headers: { "x-api-key": "a-customer" } };
  const secretBytes = crypto.getRandomValues(new Uint8Array(32));
  const secret = `whsec_${btoa(String.fromCharCode(...secretBytes))}`;

  const messageOf = (body: QuotaEvent, fields: object) =>
    ({ body, attempts: 1, ...fields }) as unknown as Message<QuotaEvent>;
  const batchOf = (...messages: Message<QuotaEvent>[]) =>
    ({ messages }) as unknown as MessageBatch<QuotaEvent>;

  /** Lets a customer use 80 % of a smaller quota. @returns the events in the queue */
  async function eventsOfUse() {
    const send = vi.fn();
    const [plan, address] = (inputOf(warnings) as ConfigInput).rules as RuleInput[];
    const rules = [{ ...plan, limit: 5 }, address] as RuleInput[];
    const config = defineConfig({ ...(inputOf(warnings) as ConfigInput), rules });
    const worker = workerWith(config, { EVENTS: { send } });
    await countStatuses(4, () => worker.send("https://api.example/", known));
    await vi.waitFor(() => expect(send).toHaveBeenCalled());
    return {
      events: send.mock.calls.map(([event]) => event as QuotaEvent),
      reached: worker.reached,
    };
  }

  it("queues an event, and posts it with a signature that the server can check", async () => {
    const { events, reached } = await eventsOfUse();
    expect(events).toMatchObject([{ policy: "plan", share: 0.8, used: 4, limit: 5 }]);
    reached.mockClear();
    const [ack, retry] = [vi.fn(), vi.fn()];
    const message = messageOf(events[0] as QuotaEvent, { ack, retry });
    const secrets = { WEBHOOK_URL: "https://own.example/hook", WEBHOOK_SECRET: secret };
    await webhookWorker.queue(batchOf(message), secrets);
    expect([ack.mock.calls, retry.mock.calls]).toEqual([[[]], []]);
    const posted = reached.mock.calls[0]?.[0] as Request;
    const [id, time] = ["webhook-id", "webhook-timestamp"].map((name) => posted.headers.get(name));
    const body = await posted.text();
    expect(JSON.parse(body)).toEqual(events[0]);
    expect(id).toBe(`plan:${events[0]?.client}:0.8:${events[0]?.resetAt}`);
    const bytes = (text: string) => new TextEncoder().encode(text);
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", secretBytes, hmac, false, ["verify"]);
    const signature = atob(posted.headers.get("webhook-signature")?.replace("v1,", "") ?? "");
    const mac = Uint8Array.from(signature, (character) => character.charCodeAt(0));
    const signed = bytes(`${id}.${time}.${body}`);
    expect(await crypto.subtle.verify("HMAC", key, mac, signed)).toBe(true);
  });

  it.each([
    ["answers 500", () => new Response("", { status: 500 })],
    ["answers a redirect", () => Response.redirect("https://other.example/")],
    ["is away", () => Promise.reject(new Error("no connection"))],
  ])("repeats a webhook later if the server %s", async (_, answer) => {
    const { events, reached } = await eventsOfUse();
    reached.mockImplementation(answer);
    const [ack, retry] = [vi.fn(), vi.fn()];
    const of = (attempts: number) => messageOf(events[0] as QuotaEvent, { attempts, ack, retry });
    const secrets = { WEBHOOK_URL: "https://own.example/hook", WEBHOOK_SECRET: secret };
    await webhookWorker.queue(batchOf(of(1), of(12)), secrets);
    expect(ack).not.toHaveBeenCalled();
    const waits = [{ delaySeconds: 120 }, { delaySeconds: 43_200 }];
    expect(retry.mock.calls.flat()).toEqual(waits);
  });
});
