import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineConfig } from "../../src/config/index.ts";
import { type RunningWorker, startWorker } from "../node/support/worker.ts";
import { type RawAnswer, sendRaw, startTarget } from "./target.ts";
import { head } from "./vector.ts";

const SECRET_KEY = "the-key-of-a-client";

let target: Awaited<ReturnType<typeof startTarget>>;
let worker: RunningWorker;

beforeAll(async () => {
  target = await startTarget();
  worker = await startWorker({
    config: {
      store: "memory",
      rules: [
        { name: "used-up", match: { paths: ["/used-up"] }, limit: 0, window: "52w" },
        { name: "roomy", match: { paths: ["/used-up", "/roomy"] }, limit: 900, window: "52w" },
        { name: "elsewhere", match: { paths: ["/elsewhere"] }, limit: 9, window: "52w" },
        {
          name: "in-shadow",
          match: { paths: ["/used-up", "/roomy"] },
          mode: "shadow",
          limit: 0,
          window: "52w",
        },
        {
          name: "by-key",
          match: { paths: ["/keyed"] },
          key: "header:x-api-key",
          limit: 0,
          window: "52w",
        },
        {
          name: "of-its-own",
          match: { paths: ["/own"] },
          limit: 0,
          window: "52w",
          response: {
            status: 403,
            body: "Come back later",
            headers: { Pragma: "cache", Age: "1" },
          },
        },
      ],
    },
    vars: { ORIGIN_URL: `http://${target.host}:${target.port}` },
  });
});

afterAll(async () => {
  await worker.stop();
  await target.stop();
});

function ask(path: string, ...fields: string[]): Promise<RawAnswer> {
  return sendRaw(worker.url, { lines: head(path, ...fields) });
}

describe("a response of Weir", () => {
  it.each([
    ["a denial", "/used-up", 429],
    ["a denial with the rule's own response", "/own", 403],
    ["a refusal", "/used-up", 400],
    ["a path that is too long", `/${"%61".repeat(2000)}`, 414],
  ])("can be read by any page, but never with cookies: %s", async (_, path, status) => {
    const lines = head(path, "Origin: https://evil.example", "Cookie: a=b");
    const sent = lines.map((line) => (status === 400 ? line.replace(".com", ".com#") : line));
    const { headers, ...answer } = await sendRaw(worker.url, { lines: sent });
    expect(answer.status).toBe(status);
    expect(headers["access-control-allow-origin"]).toBe("https://evil.example");
    expect(headers).not.toHaveProperty("access-control-allow-credentials");
  });

  it.each([
    ["a denial", "/used-up", 429],
    ["a denial with the rule's own response", "/own", 403],
    ["a refusal", "/used-up", 400],
  ])("must not be cached: %s", async (_, path, status) => {
    const lines = head(path).map((line) => (status === 400 ? line.replace("com", "com#") : line));
    const { headers, ...answer } = await sendRaw(worker.url, { lines });
    expect(answer.status).toBe(status);
    expect(headers["cache-control"]).toBe("no-store");
    for (const field of ["expires", "etag", "last-modified", "cdn-cache-control"])
      expect(headers).not.toHaveProperty(field);
  });

  it.each(["https://app.example", "null", "https://app.example:8443", "capacitor://localhost"])(
    "is readable for pages of %s",
    async (origin) => {
      const { headers } = await ask("/used-up", `Origin: ${origin}`);
      expect(headers["access-control-allow-origin"]).toBe(origin);
      expect(headers.vary).toContain("Origin");
    },
  );

  it.each([
    "*",
    "https://a.example, https://b.example",
    "https://a.example https://b.example",
    'https://a.example"',
    "https://a.example<script>",
    "https://a.example\\@b.example",
    "//a.example",
    "javascript:alert(1)",
    `https://${"a".repeat(300)}.example`,
  ])("does not repeat an invalid Origin: %s", async (origin) => {
    const { status, headers } = await ask("/used-up", `Origin: ${origin}`);
    expect(status).toBe(429);
    expect(headers).not.toHaveProperty("access-control-allow-origin");
    expect(headers).not.toHaveProperty("access-control-allow-credentials");
  });

  it.each([
    ["a line break", "Origin: https://a.example\r\nX-Injected: 1"],
    ["a LF", "Origin: https://a.example\nX-Injected: 1"],
    ["escaped line breaks", "Origin: https://a.example%0d%0aX-Injected:%201"],
    ["other bytes", "Origin: https://\xe5\x98\x8a\xe5\x98\x8dX-Injected:1"],
    ["a C1 control", "Origin: https://a.example\x85X-Injected:1"],
  ])("contains no field that the Origin injects: %s", async (_, field) => {
    const { status, headers } = await ask("/used-up", field);
    expect(status).toBe(429);
    expect(headers).not.toHaveProperty("x-injected");
  });

  it("repeats no key, address or path", async () => {
    const { status, text } = await ask(`/keyed?${SECRET_KEY}`, `X-Api-Key: ${SECRET_KEY}`);
    expect(status).toBe(429);
    expect(text).not.toMatch(new RegExp(`${SECRET_KEY}|203\\.0\\.113|/keyed`));
    expect(worker.logs().join()).not.toMatch(new RegExp(`${SECRET_KEY}|203\\.0\\.113`));
  });

  it("names the rule that denied the request, and no others", async () => {
    const { status, text, headers } = await ask("/used-up");
    expect(status).toBe(429);
    expect(headers["ratelimit-policy"]).toMatch(/^"used-up";q=0;w=\d+$/);
    expect(text).toContain('"violated-policies":["used-up"]');
    expect(text).not.toMatch(/roomy|elsewhere|in-shadow|by-key|of-its-own/);
  });

  it("names no rule in shadow mode", async () => {
    const { status, text } = await ask("/roomy");
    expect(status).toBe(200);
    expect(text).toContain('"roomy"');
    expect(text).not.toContain("in-shadow");
  });

  it("gets no text of Weir if no rule matches", async () => {
    const { status, text } = await ask("/nowhere");
    expect(status).toBe(200);
    expect(text).not.toMatch(/weir|ratelimit/i);
  });
});

describe("a configuration", () => {
  const rule = { name: "a", limit: 1, window: "1m" } as const;

  it.each(["__proto__", "constructor", "prototype"])("cannot have a field %s", (field) => {
    const config = JSON.parse(
      `{ "rules": [{ "name": "a", "limit": 1, "window": "1m", "${field}": {} }] }`,
    );
    expect(() => defineConfig(config)).toThrow(`rules[0]`);
  });

  it.each([
    "Cache-Control",
    "CDN-Cache-Control",
    "Cloudflare-CDN-Cache-Control",
    "Surrogate-Control",
    "Edge-Control",
    "X-Accel-Expires",
    "Expires",
    "ETag",
    "Last-Modified",
  ])("cannot allow caching of denials by %s", (field) => {
    const response = { headers: { [field]: "max-age=3600" } };
    expect(() => defineConfig({ rules: [{ ...rule, response }] })).toThrow(
      "rules[0].response.headers",
    );
  });

  it("cannot have a path parameter __proto__", () => {
    const paths = ["/users/:__proto__"];
    expect(() => defineConfig({ rules: [{ ...rule, match: { paths } }] })).toThrow(
      "rules[0].match.paths[0]",
    );
  });
});
