import type { ConditionsInput, ConfigInput, RuleInput } from "../../src/config/index.ts";

/**
 * The usual limit, higher than the number of vectors, so that no vector is denied. The quota left shows which client
 * Weir counted.
 */
export const LIMIT = 1_000_000;
/** The limit of the tier `gold`. */
export const GOLD = 2_000_000;

const quota = { limit: LIMIT, window: "52w", lease: false } as const;

/** A rule that counts all requests to its own path, except requests that meet the conditions. */
function unless(name: string, except: ConditionsInput): RuleInput {
  return { name, match: { paths: [`/${name}`], except }, ...quota };
}

/** The rules of the Worker that gets the vectors. */
export const RULES: ConfigInput["rules"] = [
  { name: "all", key: "global", ...quota },
  { name: "ip", match: { paths: ["/ip"] }, ...quota },
  { name: "exempt", match: { paths: ["/ip"] }, exempt: { ips: ["198.51.100.0/24"] }, ...quota },
  { name: "login", match: { paths: ["/login"] }, ...quota },
  { name: "path", match: { paths: ["/login"] }, key: "path", ...quota },
  {
    name: "api",
    match: { paths: ["/api/*"], except: { paths: ["/api/health"] } },
    ...quota,
  },
  { name: "file", match: { paths: ["/files/:name"] }, key: "param:name", ...quota },
  { name: "user", match: { paths: ["/users/:id{[0-9]+}"] }, key: "param:id", ...quota },
  { name: "locale", match: { paths: ["/:locale/sign-in", "/u/*/mails"] }, ...quota },
  { name: "cafe", match: { paths: ["/café"] }, ...quota },
  { name: "write", match: { methods: ["POST"], paths: ["/method"] }, ...quota },
  { name: "read", match: { methods: ["GET"], paths: ["/method"] }, ...quota },
  { name: "head", match: { methods: ["HEAD"], paths: ["/method"] }, ...quota },
  { name: "options", match: { methods: ["OPTIONS"], paths: ["/method"] }, ...quota },
  { name: "host", match: { hosts: ["api.example.com"], paths: ["/host"] }, ...quota },
  { name: "below", match: { hosts: ["*.wild.example"], paths: ["/host"] }, ...quota },
  { name: "by-host", match: { paths: ["/host"] }, key: "host", ...quota },
  { name: "header", match: { paths: ["/header"] }, key: "header:x-api-key", ...quota },
  { name: "bearer", match: { paths: ["/bearer"] }, key: "header:authorization", ...quota },
  { name: "agent", match: { paths: ["/agent"] }, key: "header:user-agent", ...quota },
  { name: "cookie", match: { paths: ["/cookie"] }, key: "cookie:sid", ...quota },
  { name: "query", match: { paths: ["/query"] }, key: "query:api_key", ...quota },
  { name: "pair", match: { paths: ["/pair"] }, key: ["header:user", "header:role"], ...quota },
  { name: "first", match: { paths: ["/pair"] }, key: "header:user | header:role", ...quota },
  { name: "org", match: { paths: ["/org"] }, key: "jwt:/app_metadata/org", ...quota },
  {
    name: "role",
    match: { paths: ["/role"] },
    tiers: { by: "jwt:/app_metadata/roles", limits: { gold: { limit: GOLD, window: "52w" } } },
    ...quota,
  },
  { name: "token", match: { paths: ["/token"] }, key: "jwt:sub", ...quota },
  {
    name: "tier",
    match: { paths: ["/tier"] },
    tiers: { by: "header:x-plan", limits: { gold: { limit: GOLD, window: "52w" } } },
    ...quota,
  },
  {
    name: "secret",
    match: { paths: ["/secret"] },
    exempt: { headers: { "x-internal": { secret: "INTERNAL" } } },
    ...quota,
  },
  { name: "if-header", match: { paths: ["/if-header"], headers: { "x-plan": "free" } }, ...quota },
  {
    name: "if-prefix",
    match: { paths: ["/if-prefix"], headers: { authorization: { prefix: "Bearer sk-" } } },
    ...quota,
  },
  { name: "if-query", match: { paths: ["/if-query"], query: { plan: "free" } }, ...quota },
  {
    name: "if-scheme",
    match: { paths: ["/if-scheme"], headers: { authorization: { prefix: "Bearer " } } },
    ...quota,
  },
  { name: "if-sent", match: { paths: ["/if-sent"], query: { plan: true } }, ...quota },
  unless("unless-header", { headers: { "x-probe": "up" } }),
  unless("unless-query", { query: { probe: "up" } }),
  unless("unless-prefix", { query: { probe: { prefix: "up" } } }),
  unless("unless-header-prefix", { headers: { "x-probe": { prefix: "up" } } }),
  unless("unless-any-header", { headers: { "x-probe": true } }),
  unless("unless-any-query", { query: { dry_run: true } }),
  unless("unless-no-query", { query: { force: false } }),
  unless("unless-sent", { headers: { "x-debug": false } }),
  { name: "if-ip", match: { paths: ["/if-ip"], ips: ["203.0.113.0/24"] }, ...quota, key: "global" },
  {
    name: "if-other-ip",
    match: { paths: ["/if-other-ip"], ips: ["198.51.100.0/24"] },
    ...quota,
  },
  { ...unless("unless-ip", { ips: ["198.51.100.0/24", "2a06:98c0::/29"] }), key: "global" },
  unless("unless-method", { methods: ["GET"] }),
  unless("unless-country", { countries: ["AQ"] }),
  unless("unless-bot", { bots: "verified" }),
  { name: "hidden", match: { paths: ["/login"] }, mode: "shadow", ...quota },
];

export const SECRETS = { JWT_SECRET: "a secret of 32 bytes or of more!", INTERNAL: "let-me-pass" };
