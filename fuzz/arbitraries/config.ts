import fc from "fast-check";

// Generates configurations that are valid or nearly valid. For example, two fields may contradict
// each other.

const MAX = 999_999_999_999_999;

const some = <Value>(...values: Value[]) => fc.constantFrom(...values);
const listOf = <Value>(item: fc.Arbitrary<Value>) => fc.array(item, { minLength: 1, maxLength: 2 });

const limit = fc.oneof(fc.nat(100), fc.integer({ min: 0, max: MAX }));
const window = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 52 }), some(..."smhdw")).map(([n, unit]) => `${n}${unit}`),
  fc.integer({ min: 1, max: 31_449_600 }),
);
const key = some(
  ...["ip", "host", "path", "method", "country", "asn", "ja4", "global", "ip|", "header:", "Ip"],
  ...["header:X-Api-Key", "cookie:sid", "query:a b", "custom:tenant", "header:a | ip", "ip | ip"],
  ...["param:id", "jwt:sub", "jwt:org.id", "query:__proto__", "param:__proto__", "custom:toString"],
);
const route = fc.oneof(
  some("/", "/login", "/v1/*", "/users/:id", "/users/:id?", "/u/:id{[0-9]+}", "/%6c", "/é"),
  fc
    .array(some("/", ":id", "{[a-z]{2}}", "{", "}", "(", "|", "?", "*", "..", "a", "\\", "%2f"), {
      maxLength: 6,
    })
    .map((parts) => `/${parts.join("")}`),
);
const conditions = {
  hosts: listOf(some("api.example.com", "*.example.com", "*", "h:1", "[::1]", "ü.example", "a..b")),
  methods: listOf(some("GET", "post", "OPTIONS", "M-SEARCH", "G T", "")),
  paths: listOf(route),
};
const match = fc.record(
  { ...conditions, except: fc.record(conditions, { requiredKeys: [] }) },
  { requiredKeys: [] },
);
const quota = fc
  .record({ limit, window, more: fc.integer({ min: -1, max: 20 }), maxReserved: fc.nat(9) })
  .map(({ limit, window, more, maxReserved }) => ({
    limit,
    window,
    // Most quotas have no capacity, and a few have a capacity below the limit.
    ...((more < 0 || more > 16) && { capacity: Math.min(MAX, limit + more) }),
    ...(more === 5 && { maxReserved }),
  }));
const oneQuota = fc.oneof(
  { weight: 3, arbitrary: quota as fc.Arbitrary<object> },
  { weight: 1, arbitrary: fc.record({ limits: fc.array(quota, { maxLength: 3 }) }) },
);
const names = ["a", "x-api-key", "__proto__", "constructor", "toString", "pro", "retry-after", ""];
const entriesOf = <Value>(value: fc.Arbitrary<Value>) =>
  fc.array(fc.tuple(some(...names), value), { maxLength: 2 }).map(ownEntries);
const texts = some("a", "", " a", "a\r\nset-cookie: b", "é", "10", "{}", "\0");
const extras = fc.record(
  {
    match,
    key: fc.oneof(key, listOf(key)),
    start: some("epoch", "spread", "2026-01-01T09:00:00-08:00", "2026-02-30T00:00:00Z", "0000"),
    for: some("all", "programs", "http"),
    shards: fc.nat(101),
    cost: fc.oneof(fc.nat(9), some<unknown>("header:x-cost", "header:", -1, 0.5)),
    count: some<unknown>("request", { status: [401, 403] }, { status: [99] }, "status"),
    tiers: fc.record({ by: key, limits: entriesOf(oneQuota) }),
    exempt: fc.record(
      {
        ips: listOf(some("198.51.100.0/24", "2001:db8::/32", "::ffff:1.2.3.4", "0x7f.1", "::/129")),
        headers: entriesOf(fc.oneof(texts, some({ secret: "TOKEN" }, { secret: "a b" }))),
      },
      { requiredKeys: [] },
    ),
    ban: window,
    mode: some("enforce", "shadow", "mark", "Shadow"),
    tellOrigin: some<unknown>(true, false, "yes"),
    onError: some("open", "closed", "local", "throw"),
    localShare: fc.double({ min: 0, max: 1 }),
    notify: fc.array(fc.double({ min: 0, max: 1 }), { maxLength: 5 }),
    lease: some<unknown>("auto", false, true),
    retryJitter: window,
    response: fc.record(
      {
        status: fc.integer({ min: 399, max: 600 }),
        body: fc.jsonValue(),
        headers: entriesOf(texts),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);
const rule = fc
  .tuple(fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,9}$/), oneQuota, extras, fc.nat(15))
  .map(([name, quota, fields, kept]) => ({ name, ...quota, ...pickFew(fields, kept) }));

/** Configurations as users may write them. About half of them are valid. */
export const config = fc
  .tuple(
    fc.array(rule, { maxLength: 2 }),
    fc.record(
      {
        origin: some<unknown>({ url: "https://o.example/base" }, { binding: "API" }, {}),
        store: some("upstash", "durable-object", "memory", "redis"),
        clock: some("store", "edge"),
        prefix: some("weir", "A.b-c_9", "a:b"),
        timeoutMs: fc.nat(30_001),
        headers: some("draft-11", "legacy", "both", "none"),
        ipv6Prefix: fc.nat(129),
        caseSensitivePaths: fc.boolean(),
        denialLog: fc.nat(1001),
        jwt: some<unknown>(
          { secret: "S" },
          { jwks: "https://i.example/" },
          { secret: "S", algs: [] },
        ),
        custom: some<unknown>({ keys: {} }, {}, { keys: { tenant: "a" } }, { keys: null }, []),
        nativeLimiter: some({ binding: "NATIVE" }, { binding: "" }),
        usage: some({ binding: "USAGE" }, { binding: "" }),
      },
      { requiredKeys: [] },
    ),
    fc.nat(15),
  )
  .map(([rules, fields, kept]) => ({ rules, ...pickFew(fields, kept) }));

/** Picks a few of the fields. A configuration with all fields would nearly always have a fault. */
function pickFew(fields: object, kept: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter((_, index) => (kept * 7 + index * 5) % 16 < 2),
  );
}

/** Creates an object with all entries as its own fields, even `__proto__`, as JSON.parse does. */
function ownEntries<Value>(entries: readonly (readonly [string, Value])[]): object {
  return Object.fromEntries(entries);
}
