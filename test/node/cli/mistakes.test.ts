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
const DATA_SET = (name: string) =>
  `[[analytics_engine_datasets]]\nbinding = "${name}"\ndataset = "weir_usage"\n`;
const BINDING = '[[durable_objects.bindings]]\nname = "COUNTERS"\nclass_name = "CounterObject"\n';
const MIGRATION = '[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["CounterObject"]\n';
const DELETION = '[[migrations]]\ntag = "v2"\ndeleted_classes = ["CounterObject"]\n';
const vars = (text: string) => `[vars]\n${text}\n`;

/** A mistake, the files with it, and the severity and the code of its finding. */
type Mistake = readonly [title: string, files: Files, severity: "fault" | "warning", code: string];

const wrangler = (...parts: string[]): Files => ({ "wrangler.toml": parts.join("") });

const DEPLOYMENT: readonly Mistake[] = [
  ["no COUNTERS", wrangler(HEAD, ROUTE), "fault", "counters-unbound"],
  [
    "no COUNTERS in an environment, because environments do not inherit bindings",
    wrangler(HEAD, ROUTE, COUNTERS, "[env.staging]\n"),
    "fault",
    "counters-unbound",
  ],
  [
    "a binding of counters with another name",
    wrangler(HEAD, ROUTE, COUNTERS.replace('"COUNTERS"', '"COUNTER"')),
    "fault",
    "counters-unbound",
  ],
  [
    "a misspelt var",
    wrangler(HEAD, ROUTE, vars('WIER_MODE = "shadow"'), COUNTERS),
    "warning",
    "var-misspelt",
  ],
  [
    "a var in lower case",
    wrangler(HEAD, ROUTE, vars('weir_prefix = "a"'), COUNTERS),
    "warning",
    "var-misspelt",
  ],
  [
    'no COUNTERS although the store is "durable-object"',
    { [RULES]: config({ store: "durable-object" }), ...wrangler(HEAD, ROUTE, UPSTASH) },
    "fault",
    "counters-unbound",
  ],
  [
    "new_classes instead of new_sqlite_classes",
    wrangler(HEAD, ROUTE, BINDING, MIGRATION.replace("new_sqlite_classes", "new_classes")),
    "fault",
    "class-without-sqlite",
  ],
  [
    'storage = "legacy-kv" in exports',
    wrangler(HEAD, ROUTE, COUNTERS.replace('"sqlite"', '"legacy-kv"')),
    "fault",
    "class-without-sqlite",
  ],
  [
    "a bound class that nothing declares",
    wrangler(HEAD, ROUTE, BINDING),
    "fault",
    "class-undeclared",
  ],
  [
    "a bound class that exports declares as deleted",
    wrangler(HEAD, ROUTE, COUNTERS.replace('storage = "sqlite"', 'state = "deleted"')),
    "fault",
    "class-undeclared",
  ],
  [
    "a bound class that only another migration declares",
    wrangler(HEAD, ROUTE, BINDING, MIGRATION.replace("CounterObject", "Other")),
    "fault",
    "class-undeclared",
  ],
  [
    "a bound class that a later migration deletes",
    wrangler(HEAD, ROUTE, BINDING, MIGRATION, DELETION),
    "fault",
    "class-undeclared",
  ],
  [
    "an environment whose own exports lack a bound class",
    wrangler(
      HEAD,
      ROUTE,
      COUNTERS,
      "[env.staging]\nexports = {}\nroutes = []\nworkers_dev = false\n",
      'durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]\n',
      'vars = { ORIGIN_URL = "https://origin.example" }\n',
    ),
    "fault",
    "class-undeclared",
  ],
  [
    "another name for the binding of the statistics",
    wrangler(HEAD, ROUTE, COUNTERS, CONTROL.replace("WEIR_CONTROL", "CONTROL")),
    "warning",
    "control-unbound",
  ],
  [
    "a token for operators, but no binding of the statistics",
    wrangler(HEAD, ROUTE, COUNTERS, '[secrets]\nrequired = ["WEIR_ADMIN_TOKEN"]\n'),
    "warning",
    "control-unbound",
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
  ],
  [
    "an origin binding that is not bound",
    { [RULES]: config({ origin: { binding: "API" } }), ...wrangler(HEAD, ROUTE, COUNTERS) },
    "fault",
    "origin-unbound",
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
  ],
  [
    "an origin binding to the Worker itself",
    {
      [RULES]: config({ origin: { binding: "API" } }),
      ...wrangler(HEAD, ROUTE, COUNTERS, '[[services]]\nbinding = "API"\nservice = "shop"\n'),
    },
    "fault",
    "origin-loop",
  ],
  [
    "a native limiter that is not bound",
    { [RULES]: config(NATIVE), ...wrangler(HEAD, ROUTE, COUNTERS, RATE_LIMIT("OTHER")) },
    "fault",
    "native-limiter-unbound",
  ],
  [
    "a data set that is not bound",
    {
      [RULES]: config({ usage: { binding: "USAGE" } }),
      ...wrangler(HEAD, ROUTE, COUNTERS, DATA_SET("OTHER")),
    },
    "warning",
    "usage-unbound",
  ],
  ["a custom domain without an origin", wrangler(HEAD, DOMAIN, COUNTERS), "fault", "no-origin"],
  ["no route and no origin", wrangler(HOST, COUNTERS), "fault", "no-origin"],
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
  ],
  [
    "an ORIGIN_URL without its scheme",
    wrangler(HEAD, DOMAIN, COUNTERS, vars('ORIGIN_URL = "origin.example.com"')),
    "fault",
    "origin-url-invalid",
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
  ],
  [
    "an origin of one host on the author's machine",
    {
      [RULES]: config({ origins: { "shop.example.com": { url: "http://localhost:3000" } } }),
      ...wrangler(HEAD, DOMAIN, COUNTERS),
    },
    "warning",
    "private-origin",
  ],
  [
    "an ORIGIN_URL that is the Worker's own domain",
    wrangler(HEAD, DOMAIN, COUNTERS, vars('ORIGIN_URL = "https://shop.example.com/"')),
    "fault",
    "origin-loop",
  ],
  [
    "an old compatibility date",
    wrangler(HEAD.replace("2026-11-01", "2023-01-01"), ROUTE, COUNTERS),
    "fault",
    "compatibility-date",
  ],
  [
    "a compatibility date before the first one with which requests share calls",
    wrangler(HEAD.replace("2026-11-01", "2021-12-01"), ROUTE, UPSTASH),
    "fault",
    "compatibility-date",
  ],
  [
    "a limit for open requests in a Worker that does not see clients hang up",
    {
      [RULES]: config({}, { concurrent: 2 }),
      ...wrangler(HEAD, 'compatibility_flags = ["no_nodejs_compat"]\n', ROUTE, COUNTERS),
    },
    "warning",
    "hang-ups-unseen",
  ],
  [
    "a wait in a Worker that does not see clients hang up",
    {
      [RULES]: config({}, { wait: "1m" }),
      ...wrangler(HEAD, ROUTE, COUNTERS),
    },
    "warning",
    "hang-ups-unseen",
  ],
  [
    "a Redis URL of another protocol",
    wrangler(HEAD, ROUTE, vars('UPSTASH_REDIS_REST_URL = "rediss://a.upstash.io:6379"')),
    "fault",
    "upstash-url-invalid",
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
  ],
  [
    'secrets that a deploy does not require, with store: "upstash"',
    { [RULES]: config({ store: "upstash" }), ...wrangler(HEAD, ROUTE) },
    "warning",
    "secret-not-required",
  ],
  [
    "a secret of a rule that a deploy does not require",
    {
      [RULES]: config({}, { exempt: { headers: { "x-internal": { secret: "INTERNAL" } } } }),
      ...wrangler(HEAD, ROUTE, UPSTASH),
    },
    "warning",
    "secret-not-required",
  ],
  [
    "a secret of a rule in vars",
    {
      [RULES]: config({}, { exempt: { headers: { "x-internal": { secret: "INTERNAL" } } } }),
      ...wrangler(HEAD, ROUTE, COUNTERS, vars('INTERNAL = "s3cret-token"')),
    },
    "warning",
    "secret-in-vars",
  ],
  [
    "a secret of tokens that a deploy does not require",
    {
      [RULES]: config({ jwt: { secret: "JWT_SECRET" } }, { key: "jwt:sub" }),
      ...wrangler(HEAD, ROUTE, COUNTERS),
    },
    "warning",
    "secret-not-required",
  ],
  [
    "a key secret that is too short",
    wrangler(HEAD, ROUTE, COUNTERS, vars('WEIR_KEY_SECRET = "s3cret-token"')),
    "fault",
    "key-secret-short",
  ],
  [
    "a prefix with a colon",
    wrangler(HEAD, ROUTE, COUNTERS, vars('WEIR_PREFIX = "shop:staging"')),
    "fault",
    "prefix-invalid",
  ],
  [
    "a misspelt mode",
    wrangler(HEAD, ROUTE, COUNTERS, vars('WEIR_MODE = "of"')),
    "fault",
    "mode-invalid",
  ],
  [
    "all rules in shadow mode",
    wrangler(HEAD, ROUTE, COUNTERS, vars('WEIR_MODE = "shadow"')),
    "warning",
    "rules-not-enforced",
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
  ],
  [
    "a route that an environment inherits",
    wrangler(HEAD, ROUTE, COUNTERS, "[env.staging]\n"),
    "warning",
    "same-route",
  ],
  [
    'store: "memory"',
    { [RULES]: config({ store: "memory" }), ...wrangler(HEAD, ROUTE, COUNTERS) },
    "warning",
    "memory-store",
  ],
  [
    "a migration with the older storage, in an environment",
    wrangler(
      HEAD,
      ROUTE,
      BINDING,
      MIGRATION,
      '[env.staging]\nmigrations = [{ tag = "v1", new_classes = ["CounterObject"] }]\n',
      'durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]\n',
    ),
    "fault",
    "class-without-sqlite",
  ],
  ["a broken wrangler.toml", wrangler(HEAD, "[vars\n"), "fault", "wrangler-unread"],
];

const RULE_MISTAKES: readonly Mistake[] = [
  [
    "a window in milliseconds",
    { [RULES]: config({}, { window: 60_000 }) },
    "warning",
    "milliseconds",
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
  ],
  ["a cost above the limit", { [RULES]: config({}, { cost: 10 }) }, "fault", "cost-above-limit"],
  [
    "a ban that is shorter than the window",
    { [RULES]: config({}, { ban: "10s" }) },
    "warning",
    "ban-shorter-than-window",
  ],
  [
    "a wait for a long window",
    { [RULES]: config({}, { window: "1h", wait: "30s" }) },
    "warning",
    "wait-has-little-effect",
  ],
  [
    "answers ahead of the store for a log-in",
    { [RULES]: config({}, { limit: 20, async: true, onError: "local" }) },
    "warning",
    "async-exceeds-limit",
  ],
  [
    "answers ahead of the store beside a rule that waits for it",
    {
      [RULES]: JSON.stringify({
        rules: [
          { name: "reads", limit: 600, window: "1m", async: true },
          { name: "all", limit: 9000, window: "1h", ban: "1h" },
        ],
      }),
    },
    "warning",
    "async-has-no-effect",
  ],
  [
    "an exempt network of all addresses",
    { [RULES]: config({}, { exempt: { ips: ["0.0.0.0/0"] } }) },
    "fault",
    "exempts-everybody",
  ],
  [
    "an exempt network of half of all addresses",
    { [RULES]: config({}, { exempt: { ips: ["128.0.0.0/1"] } }) },
    "warning",
    "exempts-many",
  ],
  [
    "a misspelt method",
    { [RULES]: config({}, { match: { methods: ["PSOT"] } }) },
    "warning",
    "unknown-method",
  ],
  ...["/users/[id]", "/blog/[...slug]", "/users/<int:id>", "/users/$id"].map(
    (path): Mistake => [
      `a path in the notation of another framework: ${path}`,
      { [RULES]: config({}, { match: { paths: [path] } }) },
      "warning",
      "path-notation",
    ],
  ),
  [
    "a header with the client's address as the key",
    { [RULES]: config({}, { key: "header:cf-connecting-ip" }) },
    "warning",
    "made-up-keys",
  ],
  ["no rules", { [RULES]: '{ "rules": [] }' }, "warning", "no-rules"],
  [
    "ALL in place of every method",
    { [RULES]: config({}, { match: { methods: ["ALL"] } }) },
    "warning",
    "unknown-method",
  ],
  [
    "no rule that is enforced",
    { [RULES]: config({}, { mode: "shadow" }) },
    "warning",
    "nothing-enforced",
  ],
  [
    "only rules that mark",
    { [RULES]: config({}, { mode: "mark" }) },
    "warning",
    "nothing-enforced",
  ],
];

/** The reports about all mistakes, by their titles. */
const reports = new Map(
  await Promise.all(
    [...DEPLOYMENT, ...RULE_MISTAKES].map(async ([title, files]) => {
      const all = { [RULES]: config(), "worker.ts": WORKER, ...files };
      return [title, await checkFolder(all)] as const;
    }),
  ),
);

describe.each<[string, readonly Mistake[]]>([
  ["a deployment", DEPLOYMENT],
  ["valid rules", RULE_MISTAKES],
])("check finds a mistake in %s:", (_, mistakes) => {
  test.for(mistakes)("%s", ([title, , severity, code]) => {
    const { findings = [], isFatal, text } = reports.get(title) ?? {};
    expect(findings).toContainEqual(expect.objectContaining({ code, severity }));
    for (const { cure = "" } of findings) expect(text).toContain(cure);
    expect(text).not.toContain("is ok");
    expect(text).not.toContain("s3cret-token");
    expect(isFatal).toBe(findings.some((each) => each.severity === "fault"));
  });
});

test("mistakes.txt has the findings about all mistakes", async () => {
  const texts = [...reports].map(([title, { text }]) => {
    const findings = text
      .split("\n")
      .filter((line) => /^( {2}|[\w.]+(, environment .*)?$)/.test(line));
    return [`### ${title}`, ...findings, ""].join("\n");
  });
  await expect(texts.join("\n")).toMatchFileSnapshot("mistakes.txt");
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
  [
    "no missing data set if one is bound",
    `${ROUTE}${DATA_SET("USAGE")}`,
    config({ usage: { binding: "USAGE" } }),
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
