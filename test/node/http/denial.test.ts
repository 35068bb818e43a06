import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RuleInput } from "../../../src/config/index.ts";
import { type Answer, type Outgoing, open, send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { HANDSHAKE } from "../support/websocket.ts";
import { awayFromWindowEdge } from "../support/window-edge.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const HOUR = 3600;
const DAY = 86_400;
const QUOTA_EXCEEDED = {
  type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
  title: "Request cannot be satisfied as assigned quota has been exceeded",
};

/** A rule that denies every request for a path. */
function denyAll(path: string, rule: Partial<RuleInput> = {}): RuleInput {
  return { name: path.slice(1), match: { paths: [path] }, limit: 0, window: "1h", ...rule };
}

/** A rule that admits a client's first request for a path only. */
function admitOne(path: string, rule: Partial<RuleInput> = {}): RuleInput {
  return denyAll(path, { limit: 1, ...rule });
}

const RULES: RuleInput[] = [
  admitOne("/day", { window: "1d" }),
  admitOne("/hour"),
  { ...denyAll("/also"), match: { paths: ["/hour"] }, window: "1d", mode: "shadow" },
  denyAll("/never"),
  admitOne("/costly", { limit: 4, cost: 5 }),
  {
    name: "some",
    match: { paths: ["/some"] },
    limits: [
      { limit: 1, window: "1h" },
      { limit: 9, window: "1d" },
    ],
  },
  {
    name: "all",
    match: { paths: ["/all"] },
    limits: [
      { limit: 1, window: "1h" },
      { limit: 1, window: "1d" },
    ],
  },
  { name: "get", match: { methods: ["GET"], paths: ["/get"] }, limit: 1, window: "1h" },
  { name: "any", match: { paths: ["/any"] }, limit: 1, window: "1h" },
  admitOne("/status", { response: { status: 503 } }),
  admitOne("/fields", {
    response: { headers: { "X-Reason": "quota", "Content-Type": "text/plain" } },
  }),
  admitOne("/text", { response: { body: "Slow down." } }),
  admitOne("/empty", { response: { status: 403, body: "" } }),
  admitOne("/json", { response: { status: 420, body: { error: { code: "slow" } } } }),
  admitOne("/html", {
    response: { body: "<p>Slow down.", headers: { "content-type": "text/html" } },
  }),
];

let origin: Origin;
let worker: RunningWorker;
let clients = 0;

beforeAll(async () => {
  await awayFromWindowEdge(HOUR * 1000);
  origin = await startOrigin();
  worker = await startWorker({ config: { rules: RULES }, vars: { ORIGIN_URL: origin.url } });
});

afterAll(async () => {
  await worker.stop();
  await origin.stop();
});

/** Returns a function that sends requests of a new client. */
function newClient() {
  const address = `203.0.113.${++clients}`;
  return ({ path, headers, method = "GET" }: Outgoing & { path: string }) =>
    send(worker.url, path, { method, headers: { "CF-Connecting-IP": address, ...headers } });
}

function jsonOf({ body }: Answer): unknown {
  return JSON.parse(body.toString());
}

describe("a denial", () => {
  it("is a problem of the registered type, cannot be stored, and does not reach the origin", async () => {
    const get = newClient();
    await get({ path: "/hour" });
    const before = origin.received.length;
    const answer = await get({ path: "/hour" });
    expect(answer).toMatchObject({
      status: 429,
      headers: { "content-type": "application/problem+json", "cache-control": "no-store" },
    });
    const seconds = answer.headers["retry-after"];
    expect(jsonOf(answer)).toEqual({
      ...QUOTA_EXCEEDED,
      status: 429,
      detail: `The quota "hour" of 1 per 1h is used up. Try again in ${seconds} s.`,
      "violated-policies": ["hour"],
    });
    expect(origin.received).toHaveLength(before);
  });

  it.each([
    ["/hour", HOUR, ["hour"]],
    ["/day", DAY, ["day"]],
    ["/some", HOUR, ["some/1h"]],
    ["/all", DAY, ["all/1h", "all/1d"]],
  ])(
    "for %s has a Retry-After that lasts until every violated window has ended",
    async (path, length, violated) => {
      const get = newClient();
      expect((await get({ path })).status).toBe(200);
      const before = Date.now() / 1000;
      const answer = await get({ path });
      const after = Date.now() / 1000;
      const end = (Math.floor(before / length) + 1) * length;
      expect(answer.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
      expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(end - after);
      expect(Number(answer.headers["retry-after"])).toBeLessThan(end - before + 1);
      expect(jsonOf(answer)).toMatchObject({ "violated-policies": violated });
    },
  );

  it.each([
    ["/never", 'The quota "never" of 0 per 1h admits no request.'],
    [
      "/costly",
      'The request does not fit: it costs 5, and the quota "costly" of 4 per 1h admits at most 4 at once.',
    ],
  ])("of a request that can never pass names no time: %s", async (path, detail) => {
    const answer = await newClient()({ path });
    expect(answer.headers).not.toHaveProperty("retry-after");
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(jsonOf(answer)).toEqual({
      ...QUOTA_EXCEEDED,
      status: 429,
      detail,
      "violated-policies": [path.slice(1)],
    });
  });

  it("of a HEAD request has the same fields and no body", async () => {
    const client = newClient();
    await client({ path: "/hour" });
    const head = await client({ path: "/hour", method: "HEAD" });
    const get = await client({ path: "/hour" });
    expect(head.status).toBe(429);
    expect(head.body).toHaveLength(0);
    expect(Object.keys(head.headers)).toEqual(
      expect.arrayContaining(Object.keys(get.headers).filter((name) => name !== "content-length")),
    );
  });

  it("is sent before the request's body has arrived", async () => {
    const headers = { "Content-Length": "1000000" };
    const sending = open(worker.url, "/never", { method: "PUT", headers });
    sending.flushHeaders();
    const [response] = (await once(sending, "response")) as [IncomingMessage];
    expect(response.statusCode).toBe(429);
    sending.destroy();
  });

  it("is sent instead of a WebSocket", async () => {
    const { status, body } = await newClient()({ path: "/never", headers: HANDSHAKE });
    expect(status).toBe(429);
    expect(JSON.parse(body.toString())).toMatchObject(QUOTA_EXCEEDED);
  });
});

describe("a denial that the rule replaces", () => {
  const problem = (status: number, policy: string) =>
    expect.objectContaining({ ...QUOTA_EXCEEDED, status, "violated-policies": [policy] });

  it.each<[string, number, string, body: unknown]>([
    ["/status", 503, "application/problem+json", problem(503, "status")],
    ["/fields", 429, "text/plain", problem(429, "fields")],
    ["/text", 429, "text/plain; charset=utf-8", "Slow down."],
    ["/empty", 403, "text/plain; charset=utf-8", ""],
    ["/json", 420, "application/json", { error: { code: "slow" } }],
    ["/html", 429, "text/html", "<p>Slow down."],
  ])("for %s is the rule's response, with Retry-After", async (path, status, type, body) => {
    const get = newClient();
    await get({ path });
    const answer = await get({ path });
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({
      "content-type": type,
      "cache-control": "no-store",
      "retry-after": expect.stringMatching(/^[1-9]\d*$/),
    });
    expect(answer.headers["x-reason"]).toBe(path === "/fields" ? "quota" : undefined);
    expect(limitsOf(answer.headers)).toMatchObject([{ name: path.slice(1), r: 0 }]);
    expect(typeof body === "string" ? `${answer.body}` : jsonOf(answer)).toEqual(body);
  });
});

describe("a rule's methods", () => {
  it.each([
    ["/get", "HEAD", "GET"],
    ["/any", "OPTIONS", "DELETE"],
  ])("for %s count %s and %s together", async (path, first, second) => {
    const client = newClient();
    expect((await client({ path, method: first })).status).toBe(200);
    expect((await client({ path, method: second })).status).toBe(429);
  });

  it("do not count other methods", async () => {
    const client = newClient();
    const statuses = ["POST", "POST", "GET", "GET"].map((method) =>
      client({ path: "/get", method }).then(({ status }) => status),
    );
    expect((await Promise.all(statuses)).toSorted()).toEqual([200, 200, 200, 429]);
  });
});
