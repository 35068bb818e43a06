import { describe, expect, test } from "vitest";
import { CONTROL, COUNTERS, checkFolder, type Files, HEAD, RULES, WORKER } from "./check-folder.ts";

const LOGIN = { name: "login", match: { paths: ["/cart"] }, limit: 5, window: "1m" };

/** Returns the text of a configuration. */
const config = (fields: object = {}, rule: object = {}) =>
  JSON.stringify({ rules: [{ ...LOGIN, ...rule }], ...fields });

/** A route, so that the Worker has an origin. */
const ROUTE = 'routes = ["shop.example.com/*"]\n';
const DOMAIN = 'routes = [{ pattern = "shop.example.com", custom_domain = true }]\n';
const HOST = HEAD.replace("workers_dev = false\n", "");
const UPSTASH = `[secrets]
required = ["UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"]
`;
const NATIVE = { nativeLimiter: { binding: "NATIVE" } };
const RATE_LIMIT = (name: string) =>
  `[[ratelimits]]\nname = "${name}"\nnamespace_id = "1"\nsimple = { limit = 5, period = 60 }\n`;
const vars = (text: string) => `[vars]\n${text}\n`;

/** A mistake, the files with it, the code of its finding, and words of the cure. */
type Mistake = readonly [
  title: string,
  files: Files,
  severity: "fault" | "warning",
  code: string,
  ...cure: string[],
];

const wrangler = (...parts: string[]): Files => ({ "wrangler.toml": parts.join("") });

const DEPLOYMENT: readonly Mistake[] = [
  [
    "no COUNTERS",
    wrangler(HEAD, ROUTE),
    "fault",
    "counters-unbound",
    'name = "COUNTERS"',
    "UPSTASH_REDIS_REST_URL",
  ],
  [
    "no COUNTERS in an environment, because environments do not inherit bindings",
    wrangler(HEAD, ROUTE, COUNTERS, "[env.staging]\n"),
    "fault",
    "counters-unbound",
    "environments do not inherit",
  ],
  [
    "a binding of counters with another name",
    wrangler(HEAD, ROUTE, COUNTERS.replace('"COUNTERS"', '"COUNTER"')),
    "fault",
    "counters-unbound",
    'name = "COUNTERS" in place of name = "COUNTER"',
  ],
  [
    "a misspelt var",
    wrangler(HEAD, ROUTE, vars('WIER_MODE = "shadow"'), COUNTERS),
    "warning",
    "var-misspelt",
    "Write WEIR_MODE",
  ],
  [
    "a var in lower case",
    wrangler(HEAD, ROUTE, vars('weir_prefix = "a"'), COUNTERS),
    "warning",
    "var-misspelt",
    "Write WEIR_PREFIX",
  ],
  [
    'no COUNTERS although the store is "durable-object"',
    { [RULES]: config({ store: "durable-object" }), ...wrangler(HEAD, ROUTE, UPSTASH) },
    "fault",
    "counters-unbound",
    'class_name = "CounterObject"',
  ],
  [
    "new_classes instead of new_sqlite_classes",
    wrangler(HEAD, ROUTE, COUNTERS.replace("new_sqlite_classes", "new_classes")),
    "fault",
    "migration-without-sqlite",
    'new_sqlite_classes = ["CounterObject"]',
  ],
  [
    "another name for the binding of the statistics",
    wrangler(HEAD, ROUTE, COUNTERS, CONTROL.replace("WEIR_CONTROL", "CONTROL")),
    "warning",
    "control-unbound",
    'name = "WEIR_CONTROL"',
  ],
  [
    "a token for operators, but no binding of the statistics",
    wrangler(HEAD, ROUTE, COUNTERS, '[secrets]\nrequired = ["WEIR_ADMIN_TOKEN"]\n'),
    "warning",
    "control-unbound",
    'which environments do not inherit, add a migration with a new tag and new_sqlite_classes = ["ControlObject"], and write export',
  ],
  [
    "statistics that are bound at the top level only",
    wrangler(
      HEAD,
      ROUTE,
      COUNTERS,
      CONTROL,
      '[[env.staging.durable_objects.bindings]]\nname = "COUNTERS"\nclass_name = "CounterObject"\n',
    ),
    "warning",
    "control-unbound",
    "which environments do not inherit, and write export",
  ],
  [
    "an origin binding that is not bound",
    { [RULES]: config({ origin: { binding: "API" } }), ...wrangler(HEAD, ROUTE, COUNTERS) },
    "fault",
    "origin-unbound",
    'binding = "API"',
  ],
  [
    "an origin binding that is bound in another environment only",
    {
      [RULES]: config({ origin: { binding: "API" } }),
      ...wrangler(
        HEAD,
        ROUTE,
        COUNTERS,
        '[[services]]\nbinding = "API"\nservice = "api"\n[env.staging]\n',
        'durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]\n',
      ),
    },
    "fault",
    "origin-unbound",
    "Copy the binding from the top level",
  ],
  [
    "an origin binding to the Worker itself",
    {
      [RULES]: config({ origin: { binding: "API" } }),
      ...wrangler(HEAD, ROUTE, COUNTERS, '[[services]]\nbinding = "API"\nservice = "shop"\n'),
    },
    "fault",
    "origin-loop",
    "Write the name of the Worker behind Weir as the service of API",
  ],
  [
    "a native limiter that is not bound",
    { [RULES]: config(NATIVE), ...wrangler(HEAD, ROUTE, COUNTERS, RATE_LIMIT("OTHER")) },
    "fault",
    "native-limiter-unbound",
    'name = "NATIVE"',
  ],
  [
    "a custom domain without an origin",
    wrangler(HEAD, DOMAIN, COUNTERS),
    "fault",
    "no-origin",
    "Set ORIGIN_URL",
  ],
  [
    "no route and no origin",
    wrangler(HOST, COUNTERS),
    "fault",
    "no-origin",
    "Set ORIGIN_URL",
    "secrets.required",
  ],
  [
    "an origin only at the top level, because environments do not inherit vars",
    wrangler(
      HEAD,
      DOMAIN,
      COUNTERS,
      vars('ORIGIN_URL = "https://origin.example.com"'),
      "[env.staging]\n",
      'durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]\n',
    ),
    "fault",
    "no-origin",
    "Set ORIGIN_URL in the vars of this environment too, as in the top level",
  ],
  [
    "an ORIGIN_URL without its scheme",
    wrangler(HEAD, DOMAIN, COUNTERS, vars('ORIGIN_URL = "origin.example.com"')),
    "fault",
    "origin-url-invalid",
    "https://origin.example.com",
  ],
  ...[
    "http://localhost:3000",
    "http://127.0.0.1:8787/api",
    "http://[::1]:3000",
    "http://0.0.0.0",
    "https://10.1.2.3",
    "https://172.20.0.5",
    "https://192.168.0.5",
    "http://169.254.1.1",
    "http://[fd00::1]",
    "http://api:3000",
    "http://nas.local",
    "http://host.docker.internal:3000",
  ].map(
    (url): Mistake => [
      `an ORIGIN_URL that Cloudflare cannot reach: ${url}`,
      wrangler(HEAD, DOMAIN, COUNTERS, vars(`ORIGIN_URL = "${url}"`)),
      "warning",
      "private-origin",
      "Write the public host name",
      `ORIGIN_URL=${new URL(url).origin} in .dev.vars`,
    ],
  ),
  [
    "an origin on the author's machine",
    {
      [RULES]: config({ origin: { url: "http://localhost:3000" } }),
      ...wrangler(HEAD, DOMAIN, COUNTERS),
    },
    "warning",
    "private-origin",
    "Write the public host name",
  ],
  [
    "an origin of one host on the author's machine",
    {
      [RULES]: config({ origins: { "shop.example.com": { url: "http://localhost:3000" } } }),
      ...wrangler(HEAD, DOMAIN, COUNTERS),
    },
    "warning",
    "private-origin",
    "Write the public host name",
  ],
  [
    "an ORIGIN_URL that is the Worker's own domain",
    wrangler(HEAD, DOMAIN, COUNTERS, vars('ORIGIN_URL = "https://shop.example.com/"')),
    "fault",
    "origin-loop",
    "a host name that does not lead to this Worker",
  ],
  [
    "an old compatibility date",
    wrangler(HEAD.replace("2026-11-01", "2023-01-01"), ROUTE, COUNTERS),
    "fault",
    "compatibility-date",
    'compatibility_date = "2024-10-14"',
  ],
  [
    "a compatibility date before the first one with which requests share calls",
    wrangler(HEAD.replace("2026-11-01", "2021-12-01"), ROUTE, UPSTASH),
    "fault",
    "compatibility-date",
    'compatibility_date = "2024-10-14"',
  ],
  [
    "a Redis URL of another protocol",
    wrangler(HEAD, ROUTE, vars('UPSTASH_REDIS_REST_URL = "rediss://a.upstash.io:6379"')),
    "fault",
    "upstash-url-invalid",
    "REST URL",
  ],
  [
    "a token in vars",
    wrangler(
      HEAD,
      ROUTE,
      vars(
        'UPSTASH_REDIS_REST_URL = "https://a.upstash.io"\nUPSTASH_REDIS_REST_TOKEN = "s3cret-token"',
      ),
    ),
    "warning",
    "secret-in-vars",
    "wrangler secret put",
  ],
  [
    'secrets that a deploy does not require, with store: "upstash"',
    { [RULES]: config({ store: "upstash" }), ...wrangler(HEAD, ROUTE) },
    "warning",
    "secret-not-required",
    '"UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"',
  ],
  [
    "a secret of a rule that a deploy does not require",
    {
      [RULES]: config({}, { exempt: { headers: { "x-internal": { secret: "INTERNAL" } } } }),
      ...wrangler(HEAD, ROUTE, UPSTASH),
    },
    "warning",
    "secret-not-required",
    '"INTERNAL"',
  ],
  [
    "a secret of a rule in vars",
    {
      [RULES]: config({}, { exempt: { headers: { "x-internal": { secret: "INTERNAL" } } } }),
      ...wrangler(HEAD, ROUTE, COUNTERS, vars('INTERNAL = "s3cret-token"')),
    },
    "warning",
    "secret-in-vars",
    "Remove it from vars",
  ],
  [
    "a secret of tokens that a deploy does not require",
    {
      [RULES]: config({ jwt: { secret: "JWT_SECRET" } }, { key: "jwt:sub" }),
      ...wrangler(HEAD, ROUTE, COUNTERS),
    },
    "warning",
    "secret-not-required",
    '"JWT_SECRET"',
  ],
  [
    "a key secret that is too short",
    wrangler(HEAD, ROUTE, COUNTERS, vars('WEIR_KEY_SECRET = "s3cret-token"')),
    "fault",
    "key-secret-short",
    "openssl rand -base64 32",
  ],
  [
    "a prefix with a colon",
    wrangler(HEAD, ROUTE, COUNTERS, vars('WEIR_PREFIX = "shop:staging"')),
    "fault",
    "prefix-invalid",
    'WEIR_PREFIX = "weir-',
  ],
  [
    "a misspelt mode",
    wrangler(HEAD, ROUTE, COUNTERS, vars('WEIR_MODE = "of"')),
    "fault",
    "mode-invalid",
    'WEIR_MODE = "off"',
  ],
  [
    "all rules in shadow mode",
    wrangler(HEAD, ROUTE, COUNTERS, vars('WEIR_MODE = "shadow"')),
    "warning",
    "rules-not-enforced",
    "Remove WEIR_MODE from vars",
  ],
  [
    "environments that share the counters of one database",
    wrangler(
      HEAD,
      ROUTE,
      UPSTASH,
      '[env.staging]\nsecrets.required = ["UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"]\n',
    ),
    "warning",
    "shared-prefix",
    'WEIR_PREFIX = "weir-staging"',
  ],
  [
    "a route that an environment inherits",
    wrangler(HEAD, ROUTE, COUNTERS, "[env.staging]\n"),
    "warning",
    "same-route",
    "routes = []",
  ],
  [
    'store: "memory"',
    { [RULES]: config({ store: "memory" }), ...wrangler(HEAD, ROUTE, COUNTERS) },
    "warning",
    "memory-store",
    '"durable-object"',
  ],
  [
    "a migration with the older storage, in an environment",
    wrangler(
      HEAD,
      ROUTE,
      COUNTERS,
      '[env.staging]\nmigrations = [{ tag = "v1", new_classes = ["CounterObject"] }]\n',
      'durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]\n',
    ),
    "fault",
    "migration-without-sqlite",
    "new_sqlite_classes",
  ],
  ["a broken wrangler.toml", wrangler(HEAD, "[vars\n"), "fault", "wrangler-unread", "Correct the"],
];

const RULE_MISTAKES: readonly Mistake[] = [
  [
    "a window in milliseconds",
    { [RULES]: config({}, { window: 60_000 }) },
    "warning",
    "milliseconds",
    'write "1m"',
  ],
  [
    "a limit that denies nothing beside another one",
    {
      [RULES]: config(
        {},
        {
          limit: undefined,
          window: undefined,
          limits: [
            { limit: 33, window: "1m" },
            { limit: 2000, window: "1h" },
          ],
        },
      ),
    },
    "warning",
    "limit-never-binds",
    "remove 2000 per 1h",
  ],
  [
    "a cost above the limit",
    { [RULES]: config({}, { cost: 10 }) },
    "fault",
    "cost-above-limit",
    "as high as the cost",
  ],
  [
    "a ban that is shorter than the window",
    { [RULES]: config({}, { ban: "10s" }) },
    "warning",
    "ban-shorter-than-window",
    "longer than the window",
  ],
  [
    "an exempt network of all addresses",
    { [RULES]: config({}, { exempt: { ips: ["0.0.0.0/0"] } }) },
    "fault",
    "exempts-everybody",
    "remove the entry",
  ],
  [
    "an exempt network of half of all addresses",
    { [RULES]: config({}, { exempt: { ips: ["128.0.0.0/1"] } }) },
    "warning",
    "exempts-many",
    "your own systems",
  ],
  [
    "a misspelt method",
    { [RULES]: config({}, { match: { methods: ["PSOT"] } }) },
    "warning",
    "unknown-method",
    'Write "POST"',
  ],
  ...["/users/[id]", "/blog/[...slug]", "/users/<int:id>", "/users/$id"].map(
    (path): Mistake => [
      `a path in the notation of another framework: ${path}`,
      { [RULES]: config({}, { match: { paths: [path] } }) },
      "warning",
      "path-notation",
      "Write a parameter as :id",
    ],
  ),
  [
    "a header with the client's address as the key",
    { [RULES]: config({}, { key: "header:cf-connecting-ip" }) },
    "warning",
    "made-up-keys",
    'Write key: "ip"',
  ],
  ["no rules", { [RULES]: '{ "rules": [] }' }, "warning", "no-rules", "Add a rule"],
  [
    "ALL in place of every method",
    { [RULES]: config({}, { match: { methods: ["ALL"] } }) },
    "warning",
    "unknown-method",
    "Leave methods out",
  ],
  [
    "no rule that is enforced",
    { [RULES]: config({}, { mode: "shadow" }) },
    "warning",
    "nothing-enforced",
    'remove mode: "shadow"',
  ],
  [
    "only rules that mark",
    { [RULES]: config({}, { mode: "mark" }) },
    "warning",
    "nothing-enforced",
    "add a rule that is enforced",
  ],
];

describe.each<[string, readonly Mistake[]]>([
  ["a deployment", DEPLOYMENT],
  ["valid rules", RULE_MISTAKES],
])("check finds a mistake in %s, and names the cure:", (_, mistakes) => {
  test.for(mistakes)("%s", async ([, files, severity, code, ...cure]) => {
    const all = { [RULES]: config(), "worker.ts": WORKER, ...files };
    const { findings, isFatal, text } = await checkFolder(all);
    const finding = findings.find((each) => each.code === code);
    expect(findings.map((each) => each.code)).toContain(code);
    expect(finding?.severity).toBe(severity);
    for (const words of cure) expect(finding?.cure).toContain(words);
    expect(text).toContain(finding?.cure);
    expect(text).not.toContain("is ok");
    expect(text).not.toContain("s3cret-token");
    expect(isFatal).toBe(findings.some((each) => each.severity === "fault"));
  });
});

const PUBLIC = 'ORIGIN_URL = "https://origin.example.com"';

test.each<[title: string, files: Files]>([
  [
    "a public address, a public name and a name that begins like a private one",
    {
      [RULES]: config({
        origins: {
          "a.example.com": { url: "https://172.32.0.1" },
          "b.example.com": { url: "https://localhost.example.com" },
          "c.example.com": { url: "https://[2606:4700::1]" },
        },
      }),
      ...wrangler(HEAD, 'routes = ["*.example.com/*"]\n', COUNTERS),
    },
  ],
  [
    "an origin on the author's machine that ORIGIN_URL replaces",
    {
      [RULES]: config({ origin: { url: "http://localhost:3000" } }),
      ...wrangler(HEAD, DOMAIN, vars(PUBLIC), COUNTERS),
    },
  ],
  [
    "an origin on the author's machine for wrangler dev",
    {
      ...wrangler(HEAD, DOMAIN, vars(PUBLIC), COUNTERS),
      ".dev.vars": "ORIGIN_URL=http://localhost:3000\n",
    },
  ],
  [
    "an origin on the author's machine at a top level that gets no requests",
    wrangler(
      HEAD,
      vars('ORIGIN_URL = "http://localhost:3000"'),
      COUNTERS,
      `[env.production]\n${DOMAIN}`,
      'durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]\n',
      `[env.production.vars]\n${PUBLIC}\n`,
    ),
  ],
])("check accepts %s", async (_, files) => {
  const all = { [RULES]: config(), "worker.ts": WORKER, ...files };
  expect((await checkFolder(all)).findings).toEqual([]);
});

test("check accepts literal segments such as $metadata", async () => {
  const files = { [RULES]: config({}, { match: { paths: ["/odata/$metadata", "/a/(b)"] } }) };
  expect((await checkFolder(files)).findings).toEqual([]);
});

test.each([
  [
    "no missing rate limiter if an unsafe binding is one",
    `${ROUTE}[[unsafe.bindings]]\nname = "NATIVE"\ntype = "ratelimit"\nnamespace_id = "1"\nsimple = { limit = 5, period = 60 }\n`,
    config(NATIVE, { onError: "local" }),
  ],
])("check reports %s", async (_, text, rules) => {
  const files = {
    [RULES]: rules || config(),
    "worker.ts": WORKER,
    ...wrangler(HEAD, text, COUNTERS),
  };
  expect((await checkFolder(files)).findings).toEqual([]);
});

describe("a cure is written in the notation of wrangler's file:", () => {
  test.each([
    [
      "wrangler.toml",
      'name = "shop"',
      'Add { name = "COUNTERS", class_name = "CounterObject" } to',
    ],
    [
      "wrangler.jsonc",
      '{ "name": "shop" }',
      'Add { "name": "COUNTERS", "class_name": "CounterObject" } to',
    ],
  ])("%s", async (file, content, cure) => {
    const { text } = await checkFolder({ [RULES]: config(), [file]: content });
    expect(text).toContain(cure);
  });
});
