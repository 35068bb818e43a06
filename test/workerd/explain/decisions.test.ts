import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { resolveBindings } from "../../../src/config/bindings.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { explain } from "../../../src/explain/explain.ts";
import type { DescribedRequest } from "../../../src/explain/explanation.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import type { ClientEffect, Override, RuleEffect } from "../../../src/overrides/override.ts";
import type { Store } from "../../../src/stores/store.ts";
import { MINUTE, NOW } from "../../suite/driver.ts";
import { EVERY_STORE } from "../../suite/every-store.ts";
import { randomOf } from "../../suite/random.ts";
import { runs } from "../../suite/runs.ts";
import { comparing, type Deployment } from "./comparing.ts";

// An explanation must predict the gateway's decision. So each request is explained twice, then sent, and both
// explanations are compared with the answer.

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  // Shards and `retryJitter` are random.
  vi.spyOn(Math, "random").mockReturnValue(0.4);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const CUSTOM: ConfigInput["custom"] = {
  keys: { tenant: async (request) => new URL(request.url).searchParams.get("tenant") },
  costs: { size: (request) => Number(request.headers.get("x-size") ?? "x") },
  responses: { teapot: () => new Response("short and stout", { status: 418 }) },
};

const RULES: ConfigInput["rules"] = [
  {
    name: "pair",
    limits: [
      { limit: 6, window: "1m" },
      { limit: 9, window: "1h" },
    ],
    key: ["header:x-api-key | ip", "path"],
    match: { paths: ["/v1/*"], except: { paths: ["/v1/free"], methods: ["GET"] } },
  },
  { name: "banned", limit: 3, window: "1m", ban: "2m", match: { query: { ban: true } } },
  { name: "longer", limit: 2, window: "1m", ban: ["1m", "5m"], match: { methods: ["DELETE"] } },
  {
    name: "tiers",
    limit: 4,
    window: "day",
    key: "custom:tenant | ip",
    match: { query: { tenant: true } },
    tiers: { by: "header:x-plan", limits: { pro: { limit: 8, window: "day" } } },
  },
  { name: "wide", limit: 20, window: "1m", shards: 4, key: "global", match: { methods: ["PUT"] } },
  { name: "saved", limit: 2, window: "1m", capacity: 5, start: "spread", key: "method" },
  {
    name: "size",
    limit: 20,
    window: "1h",
    cost: "custom:size",
    match: { headers: { "x-size": true } },
  },
  { name: "bytes", limit: 90, window: "1h", cost: "body:bytes", match: { methods: ["PATCH"] } },
  {
    name: "later",
    limit: 9,
    window: "1h",
    cost: { reserve: 2, settle: "header:x-cost" },
    match: { paths: ["/cost"] },
  },
  { name: "charged", limit: 9, window: "1h", cost: "header:x-cost", match: { paths: ["/cost"] } },
  { name: "none", limit: 0, window: "1h", match: { countries: ["DE"], paths: ["/v1/none"] } },
  {
    name: "quiet",
    limit: 3,
    window: "1m",
    mode: "shadow",
    ban: "1m",
    exempt: { ips: ["203.0.113.9"] },
  },
  { name: "marked", limit: 4, window: "1m", mode: "mark", tellOrigin: true },
  { name: "tea", limit: 1, window: "1h", match: { paths: ["/tea"] }, response: "custom:teapot" },
  { name: "calls", limit: 1, window: "1h", for: "programs" },
];

/** Every request has one element of each list. */
const PATHS = ["/v1/a", "/V1/A/", "/v1%2Fa", "/v1/free", "/v1/none", "/cost", "/tea", "/other"];
const METHODS = ["GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const QUERIES = ["", "", "?ban=1", "?ban=", "?tenant=a", "?tenant=b&ban=1"];
const HEADERS: Record<string, string>[] = [
  {},
  { "x-api-key": "key-1" },
  { "x-api-key": "", "x-plan": "pro" },
  { "x-size": "3", origin: "https://page.example.com" },
  { "x-size": "many", "content-length": "40" },
  { origin: "https://page.example.com", "access-control-request-method": "PUT" },
];
const ADDRESSES = ["203.0.113.7", "203.0.113.9", "2001:db8::1", ""];

function describedBy(random: (below: number) => number): DescribedRequest {
  const pick = <Item>(items: readonly Item[]) => items[random(items.length)] as Item;
  const ip = pick(ADDRESSES);
  return {
    method: pick(METHODS),
    url: `https://api.example.com${pick(PATHS)}${pick(QUERIES)}`,
    headers: { ...pick(HEADERS), ...(ip && { "cf-connecting-ip": ip }) },
    cf: pick([{ country: "DE" }, { country: "FR" }, {}]),
  };
}

async function compareMany(
  deployment: Deployment & { readonly config?: Partial<ConfigInput> },
  count: number,
  seed: number,
) {
  const random = randomOf(seed);
  const compare = comparing({ rules: RULES, custom: CUSTOM, ...deployment.config }, deployment);
  const seen = new Set<string>();
  for (let index = 0; index < count; index++) {
    const explanation = await compare(describedBy(random));
    seen.add(explanation.outcome);
    if (explanation.rules.some(({ newBan }) => newBan)) seen.add("ban");
    if (random(12) === 0) vi.setSystemTime(Date.now() + random(3) * MINUTE);
  }
  return [...seen].sort();
}

describe("an explanation shows what the gateway then does", () => {
  it.each([
    ["memory", 1000, 7],
    ["Durable Objects", 400, 8],
    ["Redis", 400, 9],
  ])("over %s, for random requests", async (storeName, count, seed) => {
    const outcomes = await compareMany({ storeName }, runs(count), seed);
    expect(outcomes).toEqual(expect.arrayContaining(["allowed", "ban", "limited"]));
  });

  it.each([
    ["shadow", ["allowed", "ban", "unmatched"]],
    ["off", ["unmatched"]],
  ] as const)("in the deployment's mode %s", async (mode, outcomes) => {
    expect(await compareMany({ mode }, runs(400), 10)).toEqual(outcomes);
  });

  it.each(["both", "legacy", "none"] as const)("with headers in the style %s", async (headers) => {
    await compareMany({ config: { headers } }, runs(300), 11);
  });

  it("with overrides of rules and clients", async () => {
    const set = [
      overrideOf("pair", { factor: 0.5 }),
      overrideOf("quiet", { mode: "enforce" }),
      overrideOf("saved", { mode: "off" }),
      overrideOf("marked", { mode: "shadow" }),
      overrideOf("banned", { kind: "blocked" }, await clientOf("203.0.113.7")),
      overrideOf("wide", { kind: "unlimited" }, await clientOf("203.0.113.9")),
    ];
    const outcomes = await compareMany({ overrides: set }, runs(500), 12);
    expect(outcomes).toEqual(["allowed", "ban", "limited", "unmatched"]);
  });

  it("with rules that differ in upper and lower case", async () => {
    await compareMany({ config: { caseSensitivePaths: true } }, runs(300), 13);
  });
});

/** Parts of paths, queries and values that servers read in different ways. */
const HOSTILE = [
  "/",
  "//",
  "/..;",
  "%2f",
  "%5c",
  "%00",
  "%ff",
  ";a",
  "/.",
  "A",
  "é",
  "%25",
  "v1",
  "?",
  "&",
  "=",
  "ban",
  "+",
];

it("for hostile paths, queries and values", async () => {
  const random = randomOf(14);
  const hostile = () =>
    Array.from({ length: 1 + random(9) }, () => HOSTILE[random(HOSTILE.length)]).join("");
  const compare = comparing({ rules: RULES, custom: CUSTOM }, {});
  for (let index = 0; index < runs(1000); index++) {
    const key = encodeURI(hostile());
    await compare({
      method: "GET",
      url: `https://api.example.com/v1/${hostile()}?ban=${hostile()}`,
      headers: { "x-api-key": key, "x-plan": key, cookie: key, "cf-connecting-ip": key },
    });
  }
});

function overrideOf(rule: string, effect: RuleEffect | ClientEffect, client?: string): Override {
  const fields = { rule, effect, reason: "sale", by: "ops", setAt: NOW, expiresAt: NOW + 1e9 };
  return { ...fields, ...(client !== undefined && { client }) } as Override;
}

/** Returns the identity of an address under a rule with the default key. */
async function clientOf(ip: string): Promise<string> {
  const config = defineConfig({
    store: "memory",
    rules: [{ name: "any", limit: 1, window: "1m" }],
  });
  const { rules } = await explain(
    { method: "GET", url: "https://a.example/", headers: { "cf-connecting-ip": ip } },
    {
      config,
      bindings: resolveBindings(config, {}),
      read: (applied) =>
        new Limiter(config, EVERY_STORE.memory?.("") as Store).clients.read(applied),
      custom: { env: {} as never, ctx: { waitUntil() {} } },
    },
  );
  return rules[0]?.client ?? "";
}
