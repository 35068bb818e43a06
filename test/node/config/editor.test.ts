import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LanguageServer, openInEditor } from "../support/language-server.ts";

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
      tellOrigin: true,
      onError: "local",
      localShare: 0.25,
      lease: "auto",
      retryJitter: "10s",
      response: { status: 429, body: "Slow down." },
    },
  ],
  origin: { url: "https://origin.example" },
  store: "upstash",
  clock: "store",
  prefix: "weir",
  timeoutMs: 1000,
  headers: "both",
  ipv6Prefix: 64,
  caseSensitivePaths: false,
  denialLog: 10,
  jwt: { secret: "JWT", alg: "HS256", issuer: "me", audience: "api" },
  nativeLimiter: { binding: "NATIVE" },
  usage: { binding: "USAGE" },
  custom: { keys: { plan: (request, { env }) => env.PLANS.get(request.url) } },
});

rateLimit(config, { rule: "api" });
`;

function exportsOf(file: string): string[] {
  const lists = readFileSync(file, "utf8").matchAll(/^export (?:type )?\{([^}]+)\}/gms);
  return [...lists].flatMap(([, names = ""]) => names.match(/\b(?!type\b)\w+/g) ?? []);
}

const EXPORTS = exportsOf("src/index.ts");
const CONFIG_EXPORTS = exportsOf("src/config/index.ts");

/** Code that uses the API for programs. It stands after {@link CONFIG} in the same file. */
const PROGRAM = `
import { ${EXPORTS.map((name) => `${name} as Own${name}`).join(", ")} } from "edge-weir";
import { ${CONFIG_EXPORTS.map((name) => `${name} as Own${name}`).join(", ")} } from "edge-weir/config";

declare const handler: OwnWeirHandler, limits: OwnWeirService, error: OwnRateLimitError;
declare const granted: OwnLimitGranted, denied: OwnLimitDenied, undecided: OwnLimitUndecided;
declare const quota: OwnQuota, variables: OwnRateLimitVariables, fault: OwnFault;
declare const context: OwnCustomContext;

handler.fetch, limits.limit, limits.check, limits.getValue, limits.reset, limits.config;
error.rule, error.retryAfterMs, OwnRateLimitError.from;
granted.ok, granted.retryAfterMs, granted.quotas, granted.undecided;
denied.ok, denied.retryAfterMs, denied.quotas, denied.undecided;
undecided.ok, undecided.retryAfterMs, undecided.quotas, undecided.undecided;
quota.policy, quota.limit, quota.windowMs, quota.remaining, quota.resetMs, quota.resetAt;
quota.violated, quota.retryAfterMs, quota.reservationDelayMs;
variables.rateLimit, context.env, context.ctx, context.c;
fault.path, fault.message;
const charged: OwnLimitOptions = { key: "k", tier: "pro", cost: 1, reserve: true, throws: true };
charged.key, charged.tier, charged.cost, charged.reserve, charged.throws;
`;

/** The members that {@link PROGRAM} reads, such as `quota.limit`. */
const MEMBERS = [...PROGRAM.matchAll(/(?<= |^)\w+\.\w+(?=[,;])/gm)].map(([member]) => member);

/** The names in {@link CONFIG} that the user chooses. */
const CHOSEN = ["pro", "plan"];
/** The name of every field in {@link CONFIG}. */
const FIELDS = [
  ...new Set([...CONFIG.matchAll(/(\w+): /g)].map(([, field]) => field as string)),
].filter((field) => !CHOSEN.includes(field));

let editor: LanguageServer;

beforeAll(async () => {
  editor = await openInEditor("weir.config.ts", CONFIG + PROGRAM);
});

afterAll(async () => {
  await editor[Symbol.asyncDispose]();
});

/** Checks that the editor shows a name's type, and at least one sentence. */
function expectExplanation(hover: string, name: string): void {
  const [, type = "", comment = ""] = /^```\w*\n(.*?)\n```\n?(.*)$/s.exec(hover) ?? [];
  expect(type).toContain(name);
  expect(comment.trim()).toMatch(/^[A-Z`"].{20,}/s);
}

describe("an editor", () => {
  it.each(FIELDS)("explains the field %s", async (field) => {
    expectExplanation(await editor.hover(field), field);
  });

  it.each([...EXPORTS, ...CONFIG_EXPORTS])("explains the export %s", async (name) => {
    expectExplanation(await editor.hoverAt(`${name} as Own${name}`), name);
  });

  it.each(MEMBERS)("explains %s", async (member) => {
    expectExplanation(await editor.hoverAt(member), member.split(".")[1] ?? "");
  });

  it.each([
    ...["weir", "rateLimit", "WeirService", "CounterObject", "defineConfig"].map(
      (name) => `${name} as Own${name}`,
    ),
    ...["handler.fetch", "limits.limit", "limits.check", "limits.getValue", "limits.reset"],
    "OwnRateLimitError.from",
  ])("shows an example of %s", async (code) => {
    expect(await editor.hoverAt(code)).toContain("@example");
  });

  it("shows no sentence as a part of an example", async () => {
    const hovers = await Promise.all([
      ...[...EXPORTS, ...CONFIG_EXPORTS].map((name) => editor.hoverAt(`${name} as Own${name}`)),
      ...MEMBERS.map((member) => editor.hoverAt(member)),
      ...FIELDS.map((field) => editor.hover(field)),
    ]);
    const examples = hovers.flatMap(
      (hover) => hover.match(/(?<=@example\*\n```tsx\n).*?(?=\n```)/gs) ?? [],
    );
    expect(examples.length).toBeGreaterThan(15);
    expect(examples.flatMap((code) => code.match(/^(?!\s*\/\/)[^=;{}]*[a-z]\.$/gm) ?? [])).toEqual(
      [],
    );
  });

  it.each([
    { code: "limits.limit", errors: ["RateLimitError", "Error"] },
    { code: "limits.check", errors: ["RateLimitError", "Error"] },
    { code: "limits.getValue", errors: ["Error"] },
    { code: "limits.reset", errors: ["Error"] },
    { code: "rateLimit as OwnrateLimit", errors: ["RangeError", "ConfigError"] },
    { code: "weir as Ownweir", errors: ["ConfigError"] },
    { code: "defineConfig as OwndefineConfig", errors: ["ConfigError"] },
  ])("names the errors of $code", async ({ code, errors }) => {
    const hover = await editor.hoverAt(code);
    const named = [...hover.matchAll(/@throws\*?\s*(?:—|-)?\s*\{?`?(\w+)/g)].map(
      ([, name]) => name,
    );
    expect(named).toEqual(expect.arrayContaining(errors));
  });

  it.each(["charged.key", "charged.tier", "charged.cost", "charged.reserve", "charged.throws"])(
    "names the default of %s",
    async (option) => {
      expect(await editor.hoverAt(option)).toContain("@default");
    },
  );

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
