import { createExecutionContext, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import agency from "guide:many-sites";
import uploads from "guide:uploads";
import webhooks from "guide:webhooks";
import { sign } from "hono/jwt";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Config } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";

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
  const { fetch } = weir(config);
  const send = (url: string, { ip = "203.0.113.1", headers, ...rest }: Outgoing = {}) => {
    const request = new Request(url, { ...rest, headers: { "CF-Connecting-IP": ip, ...headers } });
    return fetch(request as never, { ...env, ...bindings }, createExecutionContext());
  };
  return { reached, send };
}

/** Sends the same request several times, and returns the statuses with their numbers: `{ 200: 5 }`. */
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

describe("docs/guides/webhooks.md", () => {
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
    expect(await countStatuses(201, deliver("stripe"))).toEqual({ 200: 200, 503: 1 });
    expect(await countStatuses(1, deliver("github"))).toEqual({ 200: 1 });
  });

  it("denies a stranger with 429, and keeps the sender's quota", async () => {
    const { send } = workerWith(webhooks, bindings);
    const url = "https://hooks.example/webhooks/stripe";
    expect(await countStatuses(250, () => send(url, post))).toEqual({ 200: 30, 429: 220 });
    const delivered = await send(url, { ...post, headers: known });
    expect(delivered.headers.get("ratelimit")).toContain('"sender/10s";r=169');
  });

  it("exempts a sender's network from the stranger's limit", async () => {
    const { send } = workerWith(webhooks, bindings);
    const deliver = () => send("https://hooks.example/webhooks/shop", { ...post, ip: "192.0.2.7" });
    expect(await countStatuses(31, deliver)).toEqual({ 200: 31 });
  });
});

describe("docs/guides/many-sites.md", () => {
  it("counts a visitor on each site separately, with the limits of the site's customer", async () => {
    const { send } = workerWith(agency);
    const visit = (host: string) => () => send(`https://${host}/`);
    expect(await countStatuses(301, visit("bakery.example"))).toEqual({ 200: 300, 429: 1 });
    expect(await countStatuses(1, visit("www.bakery.example"))).toEqual({ 200: 1 });
    const large = await visit("shop.example")();
    expect(large.headers.get("ratelimit-policy")).toBe(
      '"visitor";q=1200;w=60, "site";q=60000;w=60',
    );
  });

  it("limits logins on each site", async () => {
    const { send } = workerWith(agency);
    const login = (host: string) => () =>
      send(`https://${host}/wp-login.php`, { method: "POST", body: "pwd=1" });
    expect(await countStatuses(11, login("museum.example"))).toEqual({ 200: 10, 429: 1 });
    expect(await countStatuses(1, login("bakery.example"))).toEqual({ 200: 1 });
  });

  it("gives a made-up host no limits of its own", async () => {
    const { send } = workerWith(agency);
    const visit = (index: number) => send(`https://made-up-${index}.example/`);
    expect(await countStatuses(61, visit)).toEqual({ 200: 60, 429: 1 });
  });

  it("forwards each request to the host that it names", async () => {
    const { reached, send } = workerWith(agency);
    await send("https://museum.example/tickets");
    expect(reached.mock.calls[0]?.[0].url).toBe("https://museum.example/tickets");
  });
});

describe("docs/guides/uploads.md", () => {
  const bindings = { JWT_SECRET };
  const url = "https://files.example/uploads/a.mp4";

  it("denies the sixth upload in ten seconds, without reading its body", async () => {
    const { reached, send } = workerWith(uploads, bindings, async (request) => {
      await request.arrayBuffer();
      return new Response(null, { status: 201, headers: { "x-stored-kib": "10" } });
    });
    const headers = await tokenOf("ann");
    const upload = () => send(url, { method: "PUT", body: "x".repeat(10_240), headers });
    expect(await countStatuses(5, upload)).toEqual({ 201: 5 });
    const pull = vi.fn();
    const body = new ReadableStream({ pull }, { highWaterMark: 0 });
    const denied = await send(url, { method: "PUT", body, headers });
    expect(denied.status).toBe(429);
    expect(pull).not.toHaveBeenCalled();
    expect(reached).toHaveBeenCalledTimes(5);
  });

  it("charges the size that the origin has stored, and denies when the day's volume is used", async () => {
    const { reached, send } = workerWith(uploads, bindings, () => {
      return new Response(null, { status: 201, headers: { "x-stored-kib": "1048576" } });
    });
    const headers = await tokenOf("bob");
    const upload = () => send(url, { method: "PUT", body: "x", headers });
    const first = await upload();
    expect(first.headers.get("ratelimit")).toMatch(/"upload-kib";r=1048576;t=86400$/);
    expect(await countStatuses(2, upload)).toEqual({ 201: 1, 429: 1 });
    expect(reached).toHaveBeenCalledTimes(2);
    const other = await send(url, { method: "PUT", body: "x", headers: await tokenOf("cid") });
    expect(other.status).toBe(201);
    vi.setSystemTime(Date.now() + DAY);
    expect(await countStatuses(1, upload)).toEqual({ 201: 1 });
  });
});
