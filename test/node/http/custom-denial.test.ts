import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { send } from "../support/client.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const main = `
import { weir } from "./weir.mjs";
const gzip = Uint8Array.from(atob("${gzipSync("slow").toString("base64")}"), (c) => c.charCodeAt(0));
const answers = {
  text: () => new Response("Wait.", { status: 420, statusText: "Calm", headers: { Vary: "*", Expires: "0" } }),
  echo: (_, { request }) =>
    new Response("no", { status: 429, headers: { "X-Echo": decodeURIComponent(new URL(request.url).search.slice(1)) } }),
  reason: (_, { request }) =>
    new Response("no", { status: 429, statusText: decodeURIComponent(new URL(request.url).search.slice(1)) }),
  length: () => new Response("12345", { status: 429, headers: { "Content-Length": "3", Connection: "x" } }),
  encoded: () => new Response(gzip, { status: 429, headers: { "Content-Encoding": "gzip" }, encodeBody: "manual" }),
  rpc: async (_, { request }) => Response.json({ id: (await request.json()).id }),
  stall: () => new Response(new ReadableStream({ start: (c) => c.enqueue(new Uint8Array(9)) }), { status: 429 }),
};
const rules = Object.keys(answers).map((name) => (
  { name, match: { paths: ["/" + name] }, limit: name === "text" ? 1 : 0, window: "1h", response: "custom:" + name }
));
export { CounterObject } from "./weir.mjs";
export default weir({ store: "memory", timeoutMs: 300, rules, custom: { responses: answers } });
`;

let worker: RunningWorker;

beforeAll(async () => {
  worker = await startWorker({ config: { rules: [] }, main });
  // This request uses the whole quota of its rule, and is forwarded to no origin.
  expect((await send(worker.url, "/text")).status).toBe(502);
});

afterAll(() => worker.stop());

const origin = "https://shop.example";

describe("a denial by a function, as clients receive it", () => {
  it("has the function's status and body, and Weir's fields once each", async () => {
    const answer = await send(worker.url, "/text", { headers: { Origin: origin } });
    expect(answer).toMatchObject({ status: 420, body: Buffer.from("Wait.") });
    expect(answer.headers).toMatchObject({
      "cache-control": "no-store",
      vary: "*",
      "access-control-allow-origin": origin,
      "retry-after": expect.stringMatching(/^\d+$/),
      ratelimit: expect.stringMatching(/^"text";r=0;t=\d+$/),
      "ratelimit-policy": '"text";q=1;w=3600',
    });
    expect(answer.headers).not.toHaveProperty("expires");
  });

  it("has no body if the method is HEAD", async () => {
    const answer = await send(worker.url, "/text", { method: "HEAD" });
    expect([answer.status, answer.body.length]).toEqual([420, 0]);
    expect(answer.headers["cache-control"]).toBe("no-store");
  });

  it("has the length of its body, whatever the function states", async () => {
    const answer = await send(worker.url, "/length");
    expect(answer.body.toString()).toBe("12345");
    expect(answer.headers["content-length"] ?? "5").toBe("5");
  });

  it("keeps a body that the function has compressed", async () => {
    const answer = await send(worker.url, "/encoded", { headers: { "Accept-Encoding": "gzip" } });
    expect(answer.headers["content-encoding"]).toBe("gzip");
    expect(answer.body).toEqual(gzipSync("slow"));
  });

  it.each(["a%0d%0aSet-Cookie:%20b=1", "a%0aSet-Cookie:%20b=1", "a%00b", "%C3%A9%E2%82%AC"])(
    "has no field that a client has injected by %s",
    async (text) => {
      for (const path of ["/echo", "/reason"]) {
        const answer = await send(worker.url, `${path}?${text}`);
        expect(answer.status).toBe(429);
        expect(answer.headers).not.toHaveProperty("set-cookie");
        expect(answer.headers["cache-control"]).toBe("no-store");
      }
    },
  );

  it("may echo an id of the request's body, and is the default response for odd bodies", async () => {
    const post = (body: string) => send(worker.url, "/rpc", { method: "POST", body });
    const answer = await post('{"id":7}');
    expect([answer.status, answer.body.toString()]).toEqual([200, '{"id":7}']);
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect((await post("{")).status).toBe(429);
    expect((await post(JSON.stringify({ id: "x".repeat(2_000_000) }))).status).toBe(429);
  });

  it("is the default response if the body stalls after its start", async () => {
    const answer = await send(worker.url, "/stall");
    expect(answer.headers["content-type"]).toBe("application/problem+json");
  });
});
