/** A mistake in a configuration. */
export interface Mistake {
  readonly config: unknown;
  /** The path of the first fault. */
  readonly path: string;
  /** A part of the message: the suggested replacement. */
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

const windows = (
  [
    ["1 minute", 'write "1m"'],
    ["1 min", 'write "1m"'],
    ["60 s", 'write "1m"'],
    ["1M", 'write "1m"'],
    ["minute", 'write "1m"'],
    ["per hour", 'write "1h"'],
    ["1h30m", 'write "90m"'],
    ["PT1M", 'write "1m"'],
    ["60", 'write 60, a number of seconds, or "1m"'],
    ["60.0", 'write 60, a number of seconds, or "1m"'],
    ["60000ms", 'write "1m"'],
    ["500ms", 'the shortest length is "1s"'],
    [86_400_000, 'write "1d" if you mean milliseconds'],
    [0, 'the shortest length is "1s"'],
    [1.5, "write a whole number of seconds, such as 2"],
    ["1 year and a day", 'allowed: "10s", "1m"'],
    ["2y", 'the longest length is "52w"'],
    ["1_000s", 'write "1000s"'],
    ["00:01:30", 'write "90s"'],
    [["1m"], 'write "1m"'],
    [{ minutes: 1 }, 'write "1m"'],
    [{ hours: 1, minutes: 30 }, 'write "90m"'],
    [{ duration: "1h" }, 'write "1h"'],
    [true, 'write a length of time, such as "15m"'],
  ] as const
).map(([window, cure]) => inRule({ window }, "window", cure));

const limits = [
  inRule({ limit: "100" }, "limit", "write 100"),
  inRule({ limit: "1,000" }, "limit", "write 1000"),
  inRule({ limit: "10r/s" }, "limit", 'write limit: 10, window: "1s"'),
  inRule({ limit: "100 per hour" }, "limit", 'write limit: 100, window: "1h"'),
  inRule({ limit: () => 5 }, "limit", "for different limits, write tiers"),
  inRule({ limit: 2.5 }, "limit", "write 2 or 3"),
  ...[Number.POSITIVE_INFINITY, 1e20, -1, "unlimited", null].map((limit) =>
    inRule({ limit }, "limit", "for no limit, remove the rule"),
  ),
  inRule({ limit: Number.NaN }, "limit", "allowed: a whole number from 0"),
  bare({ limits: {} }, "limits", "write a list: limits: [{ limit, window }]"),
  bare(
    { limits: { limit: 5, window: "1m" } },
    "limits",
    'write [{ limit: 5, window: "1m" }]; allowed: a list',
  ),
  bare(
    { limits: { minute: 5, hour: 99 } },
    "limits",
    'write [{ limit: 5, window: "1m" }, { limit: 99, window: "1h" }]',
  ),
  bare({ limits: ["5/minute"] }, "limits[0]", 'write { limit: 5, window: "1m" }'),
  inRule(
    { limits: [{ limit: 5, window: "1m" }] },
    "limit",
    "a rule or tier has either limit and window, or limits",
  ),
  inRule({ capacity: 2 }, "capacity", "capacity must be at least the limit, 5"),
  inRule({ capacity: "2x" }, "capacity", "write a number, at least the limit"),
  inRule({ capacity: "20" }, "capacity", "write 20"),
  inRule({ cost: "header" }, "cost", 'write "header:x-cost" with the name of your header'),
  inRule({ cost: "x-cost" }, "cost", 'write "header:x-cost"'),
  inRule({ count: [401, 403] }, "count", "write { status: [401, 403] }"),
  inRule({ count: { status: 401 } }, "count.status", "write [401]"),
  inRule({ shards: 6 }, "shards", "shards can be at most the smallest limit, 5"),
  inRule({ onError: "local", localShare: "25%" }, "localShare", "write 0.25"),
];

const keys = (
  [
    ["x-api-key", 'write "header:x-api-key"'],
    ["Authorization", 'write "header:authorization"'],
    ["apiKey", 'write "header:x-api-key"'],
    ["IP", 'write "ip"'],
    ["ip_address", 'write "ip"'],
    ["clientIp", 'write "ip"'],
    ["x-forwarded-for", 'write "ip"'],
    ["$binary_remote_addr", 'write "ip"'],
    ["$http_x_api_key", 'write "header:x-api-key"'],
    ["req.headers['x-api-key']", 'write "header:x-api-key"'],
    ["header", 'write "header:NAME" with the name, such as "header:x-api-key"'],
    ["header:x-api-key:SECRET", 'write "header:x-api-key"'],
    ["headr:x-api-key", 'write "header:x-api-key"'],
    ["contry", 'write "country"'],
    ["url", 'write "path"'],
    [":id", 'write "param:id"'],
    ["*", 'write "global"'],
    ["custom:user-id", 'write "custom:userId"'],
    ["ip|", 'write "ip"'],
    ["ip || path", 'write "ip | path"'],
    ["ip,path", 'write ["ip","path"]'],
    ["userId", 'write "jwt:CLAIM" for a claim of a verified token'],
    [[], 'write "global" for one counter for all clients'],
    [() => "a", 'write "custom:NAME" and put the function into custom.keys.NAME'],
    [{ header: "x-api-key" }, 'write "header:x-api-key"'],
    ["jwt:sub", "a key that reads a claim needs the top-level field jwt"],
    ["custom:plan", "Add custom: { keys: { plan: (request) => … } }"],
    ["param:id", "param:id is no parameter of match.paths"],
  ] as const
).map(([key, cure]) => inRule({ key }, "key", cure));

const matches = [
  inMatch({ paths: ["login"] }, ".paths[0]", 'write "/login"'),
  inMatch(
    { paths: ["https://api.example.com/login"] },
    ".paths[0]",
    'write hosts: ["api.example.com"], paths: ["/login"]',
  ),
  inMatch({ paths: ["/search?q=1"] }, ".paths[0]", 'write "/search"'),
  inMatch({ paths: ["/api*"] }, ".paths[0]", 'write "/api/*"'),
  inMatch({ paths: ["/users/{id}"] }, ".paths[0]", 'write "/users/:id"'),
  inMatch({ paths: ["/files/:path*"] }, ".paths[0]", 'write "/files/*"'),
  inMatch({ paths: ["/a/./b"] }, ".paths[0]", 'write "/a/b"'),
  inMatch({ paths: ["/a/../b"] }, ".paths[0]", 'write "/b"'),
  inMatch({ paths: ["GET /login"] }, ".paths[0]", 'write methods: ["GET"], paths: ["/login"]'),
  ...[
    ["~ /api", "/api/*"],
    ["/:id(\\d+)", "/:id{\\d+}"],
    ["/:id.json", "/:id{.+\\.json}"],
    ["*.php", "/:file{.+\\.php}"],
    ["/*.php", "/:file{.+\\.php}"],
  ].map(([path, route]) =>
    inMatch({ paths: [path] }, ".paths[0]", `write ${JSON.stringify(route)}`),
  ),
  inMatch({ paths: "/users/[id]" }, ".paths", 'write ["/users/:id"]'),
  inMatch({ paths: "/login" }, ".paths", 'write ["/login"]'),
  inMatch({ paths: [] }, ".paths", "leave paths out to match every path"),
  inMatch({ paths: [/login/] }, ".paths[0]", "got a regular expression; write routes"),
  inMatch({ methods: ["GET "] }, ".methods[0]", 'write "GET"'),
  inMatch({ methods: ["get,post"] }, ".methods[0]", 'write "GET", "POST"'),
  inMatch({ methods: "ALL" }, ".methods", "leave methods out to match every method"),
  inMatch({ methods: ["*"] }, ".methods[0]", "leave methods out to match every method"),
  inMatch({ hosts: ["https://api.example.com"] }, ".hosts[0]", 'write "api.example.com"'),
  inMatch({ hosts: ["api.example.com:443"] }, ".hosts[0]", 'write "api.example.com"'),
  inMatch(
    { hosts: ["api.example.com/v1"] },
    ".hosts[0]",
    'write hosts: ["api.example.com"], paths: ["/v1"]',
  ),
  inMatch({ hosts: [".example.com"] }, ".hosts[0]", 'write "*.example.com"'),
  inMatch("/login", "", 'write match: { paths: ["/login"] }'),
  inMatch(["/login", "/join"], "", 'write match: { paths: ["/login", "/join"] }'),
  inMatch(
    { paths: ["/api/*"], except: "/api/health" },
    ".except",
    'write except: { paths: ["/api/health"] }',
  ),
  inMatch({ except: ["/a", "POST /b"] }, ".except", 'write except: { methods: ["POST"], paths'),
  inMatch({ path: "/login" }, ".path", 'write paths: ["/login"] instead'),
  inMatch({ method: "POST" }, ".method", 'write methods: ["POST"] instead'),
  inMatch({ host: "a.example" }, ".host", 'write hosts: ["a.example"] instead'),
  inMatch({ headers: { a: "b" } }, ".headers", 'write it as the key: key: "header:NAME"'),
];

const fieldsOfOthers = [
  bare({ max: 5, windowMs: 60_000 }, "max", "write limit: 5 instead"),
  bare({ windowMs: 60_000, max: 5 }, "windowMs", 'write window: "1m" instead'),
  bare({ points: 5, duration: 60 }, "points", "write limit: 5 instead"),
  bare({ duration: 60, points: 5 }, "duration", 'write window: "1m" instead'),
  bare({ quota: 5, period: "1 minute" }, "quota", "write limit: 5 instead"),
  bare({ period: "1 minute", quota: 5 }, "period", 'write window: "1m" instead'),
  bare({ minute: 5 }, "minute", 'write limit: 5, window: "1m"'),
  bare({ rate: "10r/s" }, "rate", 'write limit: 10, window: "1s"'),
  inRule({ burst: 20 }, "burst", "write capacity: 20 instead"),
  bare(
    { burst: 20, limit: 100, window: "1m" },
    "burst",
    "write capacity: 120 to admit 20 requests",
  ),
  bare({ burst: 20, max: 100, window: "1m" }, "burst", "write capacity: 120 to admit 20 requests"),
  inRule({ ban: true }, "ban", 'write a length of time, such as "15m"'),
  inRule({ ban: { duration: "1h" } }, "ban", 'write "1h"'),
  inRule({ timezone: "Europe/Berlin" }, "timezone", "write the offset of your zone in start"),
  inRule({ analytics: true }, "analytics", "no other denials"),
  inRule({ blockDuration: 900 }, "blockDuration", 'write ban: "15m" instead'),
  inRule({ paths: ["/login"] }, "paths", 'write match: { paths: ["/login"] } instead'),
  inRule({ path: "/login" }, "path", 'write match: { paths: ["/login"] } instead'),
  inRule({ methods: ["POST"] }, "methods", 'write match: { methods: ["POST"] } instead'),
  inRule({ except: ["/health"] }, "except", 'write match: { except: { paths: ["/health"] } }'),
  inRule({ keys: ["ip"] }, "keys", 'write key: "ip" instead'),
  inRule({ by: "IP" }, "by", 'write key: "ip" instead'),
  inRule({ keyGenerator: () => "a" }, "keyGenerator", 'write key: "custom:NAME"'),
  inRule({ skip: () => true }, "skip", "write exempt or match.except instead"),
  inRule({ failOpen: true }, "failOpen", 'write onError: "open" instead'),
  inRule({ failure_mode_deny: true }, "failure_mode_deny", 'write onError: "closed" instead'),
  inRule({ fault_tolerant: false }, "fault_tolerant", 'write onError: "closed" instead'),
  inRule({ dryRun: true }, "dryRun", 'write mode: "shadow" instead'),
  inRule({ enabled: false }, "enabled", 'write mode: "shadow" instead'),
  inRule({ statusCode: 503 }, "statusCode", "write response: { status: 503 } instead"),
  inRule({ weight: 2 }, "weight", "write cost: 2 instead"),
  inRule({ retryAfter: 5 }, "retryAfter", "remove it: Weir sends Retry-After"),
  inRule({ algorithm: "sliding" }, "algorithm", "remove it: every rule counts in fixed windows"),
  inRule({ store: "memory" }, "store", "move store to the top level, beside rules"),
  inRule({ on_error: "open" }, "on_error", 'did you mean "onError"?'),
  inRule({ limt: 5 }, "limt", 'did you mean "limit"?'),
];

const words = [
  inRule({ onError: "fail-open" }, "onError", 'write "open"'),
  inRule({ onError: "deny" }, "onError", 'write "closed"'),
  inRule({ mode: "dry-run" }, "mode", 'write "shadow"'),
  inRule({ lease: true }, "lease", 'write "auto"'),
  inRule({ start: "2026-01-01" }, "start", 'write "2026-01-01T00:00:00Z"'),
  inRule({ start: new Date(0) }, "start", 'write "1970-01-01T00:00:00Z"'),
  inRule({ start: "monday" }, "start", 'such as "2026-01-05T00:00:00Z"'),
  inRule({ name: "Log In" }, "name", 'write "log-in"'),
  inRule({ response: 429 }, "response", "write { status: 429 }"),
  inRule({ exempt: ["10.0.0.1"] }, "exempt", "write { ips: [ … ] } around the addresses"),
  inRule({ exempt: { ips: ["10.0.0.*"] } }, "exempt.ips[0]", 'write "10.0.0.0/24"'),
  inRule({ exempt: { ip: ["::1"] } }, "exempt.ip", "write ips instead"),
  inRule(
    { exempt: { headers: { "x-internal": { secret: "s3cr3t-value" } } } },
    'exempt.headers["x-internal"]',
    "write the name of a secret of the Worker",
  ),
  inRule(
    { tiers: { by: ["custom:plan", "ip"], limits: { pro: { limit: 9, window: "1m" } } } },
    "tiers.by",
    'write "custom:plan | ip"',
  ),
  inRule(
    { tiers: { by: ["custom:plan"], limits: { pro: { limit: 9, window: "1m" } } } },
    "tiers.by",
    'write "custom:plan"',
  ),
  onTop(
    { redis: { url: "https://a.example", token: "s3cr3t" } },
    "redis",
    "set the secrets UPSTASH",
  ),
  onTop({ logger: null }, "logger", "no other denials"),
  onTop({ store: "redis" }, "store", 'write "upstash"'),
  onTop({ headers: true }, "headers", 'write "draft-11"'),
  onTop({ headers: false }, "headers", 'write "none"'),
  onTop({ timeoutMs: "1s" }, "timeoutMs", "write 1000, a number of milliseconds"),
  onTop({ timeout: 500 }, "timeout", "write timeoutMs: 500 instead"),
  onTop({ ipv6Prefix: "/64" }, "ipv6Prefix", "write 64"),
  onTop({ prefix: "a:b" }, "prefix", 'write "a-b"'),
  onTop({ origin: "https://a.example" }, "origin", 'write { url: "https://a.example" }'),
  onTop({ origin: "API" }, "origin", 'write { binding: "API" }'),
  onTop({ origin: { url: "a.example" } }, "origin.url", 'write "https://a.example"'),
  onTop({ nativeLimiter: "NATIVE" }, "nativeLimiter", 'write { binding: "NATIVE" }'),
  onTop({ keys: {} }, "keys", "write custom.keys instead"),
  onTop({ onError: "open" }, "onError", "move onError into each rule"),
  onTop({ url: "https://a.example" }, "url", "set the secrets UPSTASH_REDIS_REST_URL"),
  onTop({ jwt: { jwks: "http://a.example/k" } }, "jwt.jwks", 'write "https://a.example/k"'),
  onTop({ jwt: { secret: "not a name" } }, "jwt.secret", "write the name of the secret"),
  { config: { rules: { login: {} } }, path: "rules", cure: 'rules: [{ name: "login", … }]' },
  { config: [], path: "", cure: "write { rules: [ … ] } around the list" },
  { config: () => ({}), path: "", cure: "pass an object, not a function" },
];

/** Mistakes that users of other limiters make, each with its cure. */
export const MISTAKES: readonly Mistake[] = [
  ...windows,
  ...limits,
  ...keys,
  ...matches,
  ...fieldsOfOthers,
  ...words,
];
