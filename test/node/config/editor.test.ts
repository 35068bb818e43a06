import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type LanguageServer, openInEditor } from "../support/language-server.ts";

// The language server loads the whole project. The machine may be busy with other tests.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/**
 * A configuration with every field. If several fields have the same name, the test asks the editor
 * about the first of them.
 */
const CONFIG = `import { rateLimit } from "edge-weir";
import { defineConfig } from "edge-weir/config";

const config = defineConfig({
  rules: [
    {
      name: "api",
      for: "all",
      match: { hosts: ["a.example"], methods: ["GET"], paths: ["/a"], except: { paths: ["/b"] } },
      key: "ip",
      limit: 5,
      window: "1m",
      capacity: 5,
      maxReserved: 0,
      start: "epoch",
      shards: 1,
      cost: 1,
      count: "request",
      tiers: { by: "country", limits: { pro: { limit: 9, window: "1m" } } },
      exempt: { ips: ["192.0.2.1"] },
      ban: "1h",
      mode: "enforce",
      onError: "local",
      localShare: 0.25,
      lease: "auto",
      retryJitter: "10s",
      response: { status: 429, body: "Slow down." },
    },
  ],
  origin: { url: "https://origin.example" },
  store: "upstash",
  clock: "redis",
  prefix: "weir",
  timeoutMs: 1000,
  headers: "both",
  ipv6Prefix: 64,
  caseSensitivePaths: false,
  jwt: { secret: "JWT", alg: "HS256", issuer: "me", audience: "api" },
  nativeLimiter: { binding: "NATIVE" },
  custom: { keys: { plan: (request, { env }) => env.PLANS.get(request.url) } },
});

rateLimit(config, { rule: "api" });
`;

/** The names in {@link CONFIG} that the user chooses. */
const CHOSEN = ["pro", "plan"];
/** The name of every field in {@link CONFIG}. */
const FIELDS = [
  ...new Set([...CONFIG.matchAll(/(\w+): /g)].map(([, field]) => field as string)),
].filter((field) => !CHOSEN.includes(field));

let editor: LanguageServer;

beforeAll(async () => {
  editor = await openInEditor("weir.config.ts", CONFIG);
});

afterAll(async () => {
  await editor[Symbol.asyncDispose]();
});

describe("an editor", () => {
  it.each(FIELDS)("explains the field %s", async (field) => {
    const [, type = "", comment = ""] =
      /^```\w*\n(.*?)\n```\n?(.*)$/s.exec(await editor.hover(field)) ?? [];
    expect(type).toContain(`${field}`);
    expect(comment.trim()).toMatch(/^[A-Z`"].{20,}/s);
  });

  it("lists every kind of key in the explanation of key", async () => {
    const explanation = await editor.hover("key");
    for (const kind of ["ip", "header:NAME", "param:NAME", "jwt:CLAIM", "custom:NAME", "a | b"]) {
      expect(explanation).toContain(`"${kind}"`);
    }
  });

  it.each([
    { field: "key", suggestions: ["ip", "global", "header:x-api-key", "header:x-api-key | ip"] },
    { field: "by", suggestions: ["jwt:sub", "custom:tenant"] },
    { field: "window", suggestions: ["10s", "1d", "1h", "1m", "1w"] },
    { field: "ban", suggestions: ["1h"] },
    { field: "start", suggestions: ["epoch", "spread"] },
    { field: "mode", suggestions: ["enforce", "shadow"] },
    { field: "onError", suggestions: ["closed", "local", "open"] },
    { field: "store", suggestions: ["durable-object", "memory", "upstash"] },
    { field: "rule", suggestions: ["api"] },
  ])("suggests values of $field", async ({ field, suggestions }) => {
    expect(await editor.completions(field)).toEqual(expect.arrayContaining(suggestions));
  });
});
