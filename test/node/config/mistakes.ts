export interface Mistake {
  readonly config: unknown;
  /** The path of the first fault. */
  readonly path: string;
  /** A part of the message: the suggested replacement, or the allowed values. */
  readonly cure: string;
}

function inRule(fields: object, path: string, cure: string): Mistake {
  const rule = { name: "api", limit: 5, window: "1m", ...fields };
  return { config: { rules: [rule] }, path: `rules[0].${path}`, cure };
}

/** A rule without a limit and a window, except those in `fields`. */
function bare(fields: object, path: string, cure: string): Mistake {
  return { config: { rules: [{ name: "api", ...fields }] }, path: `rules[0].${path}`, cure };
}

function inMatch(match: unknown, path: string, cure: string): Mistake {
  return inRule({ match }, `match${path}`, cure);
}

function onTop(fields: object, path: string, cure: string): Mistake {
  return { config: { rules: [], ...fields }, path, cure };
}

/** Lengths of windows in other notations, each with the length that the message suggests. */
const windows = (
  [
    ["1 minute", 'write "1m"'],
    ["1 min", 'write "1m"'],
    ["60 s", 'write "1m"'],
    ["1M", 'write "1m" for a minute, or "month" for a month'],
    ["minute", 'write "1m"'],
    ["per hour", 'write "1h"'],
    ["1h30m", 'write "90m"'],
    ["PT1M", 'write "1m"'],
    ["60", 'write "1m"'],
    ["60.0", 'write "1m"'],
    ["60000ms", 'write "1m"'],
    ["500ms", 'the shortest length is "1s"'],
    [86_400_000, 'write "1d" if you mean milliseconds'],
    [0, 'the shortest length is "1s"'],
    [1.5, 'got 1.5; allowed: "10s", "1m"'],
    ["1 year and a day", 'allowed: "10s", "1m"'],
    ["1m 10m 1h", 'got "1m 10m 1h"; allowed: "10s", "1m"'],
    ["2y", 'the longest length is "52w"'],
    [["1m"], 'got ["1m"]; allowed: "10s", "1m"'],
    [{ minutes: 1 }, 'allowed: "10s", "1m"'],
    [true, 'got true; allowed: "10s", "1m"'],
    ["monthly", 'write "month"'],
    ["1mo", 'write "month"'],
    ["1 month", 'write "month"'],
    ["Year", 'write "year"'],
    ["annually", 'write "year"'],
    ["daily", 'write "1d"'],
    ["quarter", 'or "day", "week", "month", "year" of the calendar'],
  ] as const
).map(([window, cure]) => inRule({ window }, "window", cure));

const month = { window: "month" };
const START = 'allowed: "epoch", or a time with its zone';
const TIME_ZONE = "allowed: the IANA name of a time zone";
const calendars = [
  inRule({ ...month, timeZone: "Europe/Berln" }, "timeZone", 'did you mean "Europe/Berlin"?'),
  inRule({ ...month, timeZone: "europe/berlin " }, "timeZone", 'write "Europe/Berlin"'),
  inRule({ ...month, timeZone: "+01:00" }, "timeZone", TIME_ZONE),
  inRule({ ...month, timeZone: 1 }, "timeZone", TIME_ZONE),
  inRule(
    { timeZone: "Europe/Berlin" },
    "timeZone",
    "remove timeZone, or write a window of the cal",
  ),
  inRule({ ...month, start: 15 }, "start", `got 15; ${START}`),
  inRule({ ...month, start: "15th" }, "start", `got "15th"; ${START}`),
  inRule({ ...month, start: { day: 15 } }, "start", START),
  inRule({ window: "year", start: "02-30" }, "start", '"04-06"'),
  inRule({ start: "2026-01-01" }, "start", `got "2026-01-01"; ${START}`),
  inRule({ start: new Date(0) }, "start", `got a Date; ${START}`),
  inRule({ ...month, start: "spread" }, "start", 'remove "spread"'),
  inRule({ ...month, start: "04-06" }, "start", 'only a window "year" begins at such a start'),
  inRule({ ...month, start: "monday" }, "start", 'only a window "week" begins at such a start'),
  inRule(
    { window: "day", start: "15 09:00" },
    "start",
    'only a window "month" begins at such a start',
  ),
  inRule({ window: "year", start: "15" }, "start", 'only a window "month" begins at such a start'),
  inRule(
    { start: "monday" },
    "start",
    'write a time with its zone, such as "2026-01-05T09:00:00Z"',
  ),
];

const LIMITS = "allowed: a list of { limit, window }";
const limits = [
  inRule({ limit: "100" }, "limit", "write 100"),
  inRule({ limit: "1,000" }, "limit", "write 1000"),
  inRule({ limit: "1k" }, "limit", "write 1000"),
  inRule({ limit: "10r/s" }, "limit", 'write limit: 10, window: "1s"'),
  inRule({ limit: "100/minute" }, "limit", 'write limit: 100, window: "1m"'),
  inRule({ limit: "100 per hour" }, "limit", 'write limit: 100, window: "1h"'),
  inRule({ ...month, limit: "100/month" }, "limit", 'write limit: 100, window: "month"'),
  inRule({ limit: () => 5 }, "limit", "got a function; allowed: a whole number from 0"),
  inRule({ limit: 2.5 }, "limit", "write 2 or 3"),
  ...[Number.POSITIVE_INFINITY, -1, "unlimited", null].map((limit) =>
    inRule({ limit }, "limit", "allowed: a whole number from 0 to 999999999999999"),
  ),
  ...[Number.NaN, 1e20].map((limit) =>
    inRule({ limit }, "limit", "allowed: a whole number from 0 to 999999999999999"),
  ),
  bare({ limits: {} }, "limits", LIMITS),
  bare({ limits: { limit: 5, window: "1m" } }, "limits", LIMITS),
  bare({ limits: ["5/minute"] }, "limits[0]", 'write { limit: 5, window: "1m" }'),
  inRule(
    { limits: [{ limit: 5, window: "1m" }] },
    "limit",
    "a rule or tier has either limit and window, or limits",
  ),
  inRule({ capacity: 2 }, "capacity", "capacity must be at least the limit, 5"),
  inRule({ capacity: "2x" }, "capacity", "allowed: a whole number from 0"),
  inRule({ capacity: "20" }, "capacity", "write 20"),
  inRule({ shards: 6 }, "shards", "shards can be at most the smallest limit, 5"),
];

const COST = "allowed: a whole number from 0 to 999999999999999, ";
const costs = [
  inRule({ cost: "x-cost" }, "cost", `got "x-cost"; ${COST}`),
  inRule({ cost: "content-length" }, "cost", `"custom:NAME" or "body:bytes" of the request`),
  inRule({ cost: "5" }, "cost", "write 5"),
  inRule({ cost: () => 5 }, "cost", `got a function; ${COST}`),
  inRule({ cost: { from: () => 5 } }, "cost.from", "got a function; allowed: "),
  inRule(
    { cost: { from: "header:x-cost" } },
    "cost.from",
    'got "header:x-cost"; allowed: "custom:NAME" or "body:bytes"',
  ),
  inRule({ cost: { reserve: "1,200", settle: "header:x-a" } }, "cost.reserve", "write 1200"),
  inRule(
    { cost: { reserve: 5, settle: "x-tokens" } },
    "cost.settle",
    'got "x-tokens"; allowed: "header:NAME" or "custom:NAME" of the response',
  ),
  inRule(
    { cost: { reserve: 5, settle: () => 5 } },
    "cost.settle",
    'allowed: "header:NAME" or "custom:NAME" of the response',
  ),
  inRule({ cost: { header: "X-Cost" } }, "cost.header", "unknown field; allowed: from, reserve, "),
  inRule({ cost: { from: "body:bytes", maxx: 5 } }, "cost.maxx", 'did you mean "max"?'),
  inRule({ reserve: "custom:estimate", settle: "header:x" }, "reserve", "write cost: { reserve: …"),
  inRule({ settle: "header:x" }, "settle", "write cost: { reserve: …"),
  inRule({ count: [401, 403] }, "count", 'allowed: "request", or { status: [401, 403] }'),
  inRule({ count: { status: 401 } }, "count.status", "allowed: a list of HTTP statuses"),
];

const KEYS = "allowed: ip, host, path, method, country";
const keys = (
  [
    ["x-api-key", 'write "header:x-api-key"'],
    ["IP", 'write "ip"'],
    ["x-forwarded-for", 'write "header:x-forwarded-for"'],
    ["header", KEYS],
    ["header:x-api-key:SECRET", 'write "header:x-api-key"'],
    ["headr:x-api-key", 'write "header:x-api-key"'],
    ["contry", 'write "country"'],
    [":id", 'write "param:id"'],
    ["custom:user-id", KEYS],
    ["ip|", 'write "ip"'],
    ["ip || path", 'write "ip | path"'],
    ["IP | x-api-key", 'write "ip | header:x-api-key"'],
    ["ip,path", `got "ip,path"; ${KEYS}`],
    ["userId", KEYS],
    [[], KEYS],
    [() => "a", KEYS],
    [{ header: "x-api-key" }, KEYS],
    ["jwt:app_metadata/plan", KEYS],
    ["jwt:https://example.com/plan", KEYS],
    ["jwt:/app_metadata/plan", "a key that reads a claim needs the top-level field jwt"],
    ["jwt:sub", "a key that reads a claim needs the top-level field jwt"],
    ["custom:plan", "Add custom: { keys: { plan: (request) => … } }"],
    ["param:id", "param:id is no parameter of match.paths"],
  ] as const
).map(([key, cure]) => inRule({ key }, "key", cure));

const PATHS = "allowed: paths in Hono's route syntax";
const VALUE = "allowed: true (present), false (absent), a text without spaces";
const matches = [
  ...["login", "https://api.example.com/login", "/search?q=1", "/api*", "/:id(\\d+)", /login/].map(
    (path) => inMatch({ paths: [path] }, ".paths[0]", PATHS),
  ),
  inMatch({ paths: "/login" }, ".paths", "allowed: a list of paths in Hono's route syntax"),
  inMatch({ paths: [] }, ".paths", "got []; allowed: a list of paths"),
  inMatch({ methods: ["get,post"] }, ".methods[0]", 'allowed: HTTP methods, such as "POST"'),
  inMatch({ methods: "ALL" }, ".methods", "allowed: a list of HTTP methods"),
  inMatch(
    { hosts: ["https://api.example.com"] },
    ".hosts[0]",
    "allowed: host names without a port",
  ),
  inMatch("/login", "", 'got "/login"; allowed: an object with hosts, methods, paths'),
  inMatch({ except: "/api/health" }, ".except", "allowed: an object with hosts, methods, paths"),
  inMatch({ path: "/login" }, ".path", "write paths instead"),
  inMatch({ method: "POST" }, ".method", "write methods instead"),
  inMatch({ host: "a.example" }, ".host", "write hosts instead"),
  inMatch({ countries: ["Germany"] }, ".countries[0]", "allowed: countries as ISO 3166-1 codes"),
  inMatch({ countries: "DE" }, ".countries", "allowed: a list of countries as ISO 3166-1 codes"),
  inMatch({ geo: ["France"] }, ".geo", "write countries instead"),
  inMatch({ asns: ["AS13335"] }, ".asns[0]", 'allowed: numbers of networks, such as 13335 for "AS'),
  inMatch({ asn: "AS13335" }, ".asn", "write asns instead"),
  inMatch({ bots: true }, ".bots", 'allowed: "verified", or a list of Cloudflare\'s categories'),
  inMatch({ verifiedBots: true }, ".verifiedBots", "write bots instead"),
  inMatch({ headers: ["x-a"] }, ".headers", "allowed: an object of header names and values"),
  ...[1, null, "", " a", { startsWith: "a" }, { secret: "A" }, { prefix: "" }].map((a) =>
    inMatch({ headers: { a } }, ".headers.a", VALUE),
  ),
  inMatch({ query: { a: /b/ } }, ".query.a", VALUE),
  inMatch({ ip: ["192.0.2.1"] }, ".ip", "write ips instead"),
  inMatch({ ips: ["10.0.0.*"] }, ".ips[0]", "allowed: an address or a network, such as"),
  inMatch({ userAgent: "curl" }, ".userAgent", 'write headers: { "user-agent"'),
  inMatch({ cookies: { a: "b" } }, ".cookies", 'write it as the key: key: "cookie:NAME"'),
  inMatch(
    { headers: { "X-Plan": "free", "x-plan": "trial" } },
    '.headers["x-plan"]',
    '"X-Plan" is the same header. Remove one of the two',
  ),
];

const fieldsOfOthers = [
  bare({ max: 5, windowMs: 60_000 }, "max", "write limit: 5 instead"),
  bare({ windowMs: 60_000, max: 5 }, "windowMs", 'write window: "1m" instead'),
  bare({ points: 5, duration: 60 }, "points", "write limit: 5 instead"),
  bare({ duration: 60, points: 5 }, "duration", 'write window: "1m" instead'),
  bare({ quota: 5, period: "1 minute" }, "quota", "write limit: 5 instead"),
  bare({ period: "1 minute", quota: 5 }, "period", 'write window: "1m" instead'),
  bare({ minute: 5 }, "minute", 'write limit: 5, window: "1m"'),
  bare({ month: 5 }, "month", 'write limit: 5, window: "month"'),
  bare({ rate: "10r/s" }, "rate", 'write limit: 10, window: "1s"'),
  inRule(
    { burst: 20 },
    "burst",
    "write capacity for quota of earlier windows: it includes the lim",
  ),
  inRule({ deny: true }, "deny", "write limit: 0, with match for some requests"),
  inRule({ bans: ["1m", "1h"] }, "bans", "write ban"),
  inRule({ timezone: "Europe/Berlin" }, "timezone", 'did you mean "timeZone"?'),
  inRule({ utcOffset: 60 }, "utcOffset", "write the offset of your zone in start"),
  inRule({ analytics: true }, "analytics", "Weir logs failures and denials"),
  inRule({ blockDuration: 900 }, "blockDuration", 'write ban: "15m" instead'),
  inRule({ path: "/login" }, "path", "write match: { paths: … } instead"),
  inRule({ methods: ["POST"] }, "methods", "write match: { methods: … } instead"),
  inRule({ except: ["/health"] }, "except", "write match: { except: … } instead"),
  inRule({ keys: ["ip"] }, "keys", "write key instead"),
  inRule({ keyGenerator: () => "a" }, "keyGenerator", "write key instead"),
  inRule({ skip: () => true }, "skip", "write exempt or match.except instead"),
  inRule({ failOpen: true }, "failOpen", "write onError instead"),
  inRule({ failure_mode_deny: true }, "failure_mode_deny", "write onError instead"),
  inRule({ dryRun: true }, "dryRun", "write mode instead"),
  inRule({ softLimit: true }, "softLimit", "write mode instead"),
  inRule({ enabled: false }, "enabled", "write mode instead"),
  inRule({ statusCode: 503 }, "statusCode", "write response instead"),
  inRule({ weight: 2 }, "weight", "write cost: 2 instead"),
  inRule({ retryAfter: 5 }, "retryAfter", "remove it: Weir sends Retry-After"),
  inRule({ algorithm: "sliding" }, "algorithm", "remove it: every rule counts in fixed windows"),
  inRule({ store: "memory" }, "store", "move store to the top level, beside rules"),
  inRule({ timeout: 9 }, "timeout", "write timeoutMs at the top level, beside rules"),
  inRule({ on_error: "open" }, "on_error", 'did you mean "onError"?'),
  inRule({ limt: 5 }, "limt", 'did you mean "limit"?'),
  inRule({ exempt: { ip: ["::1"] } }, "exempt.ip", 'did you mean "ips"?'),
  onTop({ timeout: 500 }, "timeout", "write timeoutMs: 500 instead"),
  onTop({ keys: {} }, "keys", "write custom: { keys: … } instead"),
  onTop({ onError: "open" }, "onError", "move onError into each rule"),
  onTop({ url: "https://a.example" }, "url", "set the secrets UPSTASH_REDIS_REST_URL"),
  onTop({ redis: { token: "s3cr3t" } }, "redis", "set the secrets UPSTASH"),
  onTop({ logger: null }, "logger", "Weir logs failures and denials"),
  onTop({ origin: { "a.example": {} } }, 'origin["a.example"]', "unknown field; allowed: url, bin"),
];

const LENGTHS = "allowed: a list of 1 to 10 lengths of time";
const bans = [
  inRule({ ban: "month" }, "ban", 'write "30d"'),
  inRule({ ban: true }, "ban", 'got true; allowed: "10s", "1m"'),
  inRule({ ban: false }, "ban", "{ lengths, forgetAfter }"),
  inRule({ ban: { duration: "1h" } }, "ban", "{ lengths, forgetAfter }"),
  inRule({ ban: "1m 10m 1h" }, "ban", `or a list of 1 to 10 lengths of time`),
  inRule({ ban: ["1 minute", "1h"] }, "ban[0]", 'write "1m"'),
  inRule({ ban: ["1h", "10m"] }, "ban[1]", "no ban can be shorter than the one before it"),
  inRule({ ban: [60_000, 86_400_000] }, "ban[1]", 'write "1d" if you mean milliseconds'),
  inRule({ ban: { lengths: "1m, 1h" } }, "ban.lengths", LENGTHS),
  inRule({ ban: { lengths: ["1m", "1h"], forgetAfter: "1 day" } }, "ban.forgetAfter", 'write "1d"'),
];

const BY_HOST = "allowed: 1 to 64 characters";
const tiers = [
  inRule(
    { tiers: { by: "host", limits: { "b.example:80": { limit: 9, window: "1m" } } } },
    'tiers.limits["b.example:80"]',
    BY_HOST,
  ),
  inRule(
    { tiers: { by: "host", limits: { "b.example": { limit: -1, window: "1m" } } } },
    'tiers.limits["b.example"].limit',
    "allowed: a whole number from 0",
  ),
  inRule(
    { tiers: { by: ["custom:plan"], limits: { pro: { limit: 9, window: "1m" } } } },
    "tiers.by",
    KEYS,
  ),
  inRule({ tiers: { by: "plan", limits: { pro: { limit: 9, window: "1m" } } } }, "tiers.by", KEYS),
];

const words = [
  inRule({ onError: "opne" }, "onError", 'did you mean "open"?'),
  inRule({ mode: "Shadow" }, "mode", 'write "shadow"'),
  inRule({ mode: "dry-run" }, "mode", 'allowed: "enforce", "shadow", "mark"'),
  inRule({ lease: true }, "lease", 'allowed: "auto", false'),
  inRule({ tellOrigin: "yes" }, "tellOrigin", "allowed: true or false"),
  inRule({ onError: "local", localShare: "25%" }, "localShare", "allowed: a number above 0, at mo"),
  onTop({ store: "upstah" }, "store", 'did you mean "upstash"?'),
  onTop({ headers: true }, "headers", 'allowed: "draft-11", "legacy", "both", "none"'),
  onTop({ timeoutMs: "1s" }, "timeoutMs", "write 1000, a number of milliseconds"),
  onTop({ ipv6Prefix: "/64" }, "ipv6Prefix", "write 64"),
  onTop({ denialLog: "5" }, "denialLog", "write 5"),
];

/** The names of two functions, each in the field of the other one. */
const SWAPPED = { reserve: "custom:usage", settle: "custom:estimate" } as const;

const functions = [
  {
    config: {
      rules: [{ name: "api", limit: 5, window: "1m", cost: "custom:usage" }],
      custom: { settle: { usage: () => 1 } },
    },
    path: "rules[0].cost",
    cure: "usage is in custom.settle",
  },
  ...(["reserve", "settle"] as const).map((field) => ({
    config: {
      rules: [
        {
          name: "api",
          limit: 5,
          window: "1m",
          cost: { reserve: "custom:estimate", settle: "custom:usage", [field]: SWAPPED[field] },
        },
      ],
      custom: { costs: { estimate: () => 1 }, settle: { usage: () => 1 } },
    },
    path: `rules[0].cost.${field}`,
    cure: field === "reserve" ? "usage is in custom.settle" : "estimate is in custom.costs",
  })),
  onTop({ custom: { costs: { a: Promise.resolve(1) } } }, "custom.costs.a", "allowed: a function"),
  inRule(
    { response: { body: () => "a" } },
    "response.body",
    "allowed: a text, or an object that can be written as JSON",
  ),
];

const ORIGIN = "allowed: either { url:";
const RULES = "allowed: a list of rules";
const objects = [
  inRule({ name: "Log In" }, "name", 'got "Log In"; allowed: 1 to 64 characters of a-z'),
  inRule({ response: 429 }, "response", "got 429; allowed: an object with status, body, headers"),
  inRule({ exempt: ["10.0.0.1"] }, "exempt", "allowed: at least one of ips, headers"),
  inRule({ exempt: { ips: ["10.0.0.*"] } }, "exempt.ips[0]", "allowed: an address or a network"),
  inRule(
    { exempt: { headers: { "X-A": { secret: "A" }, "x-a": { secret: "B" } } } },
    'exempt.headers["x-a"]',
    '"X-A" is the same header. Remove one of the two',
  ),
  inRule(
    { exempt: { headers: { "x-internal": { secret: "s3cr3t-value" } } } },
    'exempt.headers["x-internal"]',
    "a secret of the Worker",
  ),
  onTop({ prefix: "a:b" }, "prefix", 'got "a:b"; allowed: 1 to 64 characters of A-Z'),
  ...["https://a.example", "API"].map((origin) => onTop({ origin }, "origin", ORIGIN)),
  onTop({ origins: { a: "SHOP" } }, "origins.a", ORIGIN),
  onTop({ origins: { "*": { binding: "API" } } }, 'origins["*"]', "allowed: a host name without"),
  onTop({ origin: { url: "a.example" } }, "origin.url", "allowed: an absolute http or https URL"),
  onTop({ nativeLimiter: "NATIVE" }, "nativeLimiter", 'allowed: { binding: "NAME" }'),
  onTop({ jwt: { jwks: "http://a.example/k" } }, "jwt.jwks", "allowed: an absolute https URL"),
  onTop(
    { jwt: { secret: "not a name" } },
    "jwt.secret",
    "the name of a secret or var of the Worker",
  ),
  { config: { rules: { login: {} } }, path: "rules", cure: RULES },
  {
    config: { rules: [[]] },
    path: "rules[0]",
    cure: "got []; allowed: an object with name, match",
  },
  {
    config: { rules: { "rules/login.ts": [], "rules/search.ts": { searchRules: [] } } },
    path: 'rules["rules/search.ts"]',
    cure: RULES,
  },
  { config: [], path: "", cure: "got []; allowed: an object with rules, origin" },
  { config: () => ({}), path: "", cure: "got a function; allowed: an object with rules, origin" },
];

/**
 * Mistakes that users of other limiters make, each with its cure. For a mistake without a cure, the
 * message still has the allowed values.
 */
export const MISTAKES: readonly Mistake[] = [
  ...windows,
  ...calendars,
  ...limits,
  ...costs,
  ...keys,
  ...matches,
  ...fieldsOfOthers,
  ...bans,
  ...tiers,
  ...words,
  ...functions,
  ...objects,
];
