// Requests that a rule nearly counts. Each row has the deciding condition, the value in the request, and the value that
// the rule demands.

export interface NearMiss {
  /** Fields of the rule. */
  readonly rule?: object;
  /** Top-level fields of the configuration. */
  readonly config?: object;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly field: string;
  /** `holds` for an exception that applies. @default "fails" */
  readonly result?: "holds" | "fails";
  readonly actual: string | RegExp;
  readonly expected: string | RegExp;
  /** Essentials of the note or of the sentence. */
  readonly why?: RegExp;
  /** Whether the request shows the texts that begin with `hidden-`, because they are in its URL. */
  readonly showsTexts?: true;
}

const HOST = "https://api.example.com";
const PREFLIGHT = ["-H", "origin: https://example.com", "-H", "access-control-request-method: PUT"];
const login = { match: { paths: ["/login"] } };

export const NEAR_MISSES: Readonly<Record<string, NearMiss>> = {
  "a path with one letter more": {
    rule: login,
    args: [`${HOST}/logins`],
    field: "match.paths",
    actual: "/logins",
    expected: "/login",
  },
  "a path below the route": {
    rule: login,
    args: [`${HOST}/login/reset`],
    field: "match.paths",
    actual: "/login/reset",
    expected: "/login",
  },
  "a path without its last parameter": {
    rule: { match: { paths: ["/users/:id"] } },
    args: [`${HOST}/users`],
    field: "match.paths",
    actual: "/users",
    expected: "/users/:id",
  },
  "a parameter that does not fit its pattern": {
    rule: { match: { paths: ["/users/:id{[0-9]+}"] } },
    args: [`${HOST}/users/7a`],
    field: "match.paths",
    actual: "/users/7a",
    expected: "/users/:id{[0-9]+}",
  },
  "a path beside a wildcard": {
    rule: { match: { paths: ["/v1/*"] } },
    args: [`${HOST}/v1beta/users`],
    field: "match.paths",
    actual: "/v1beta/users",
    expected: "/v1/*",
  },
  "upper case in a case-sensitive path": {
    rule: login,
    config: { caseSensitivePaths: true },
    args: [`${HOST}/Login`],
    field: "match.paths",
    actual: "/Login",
    expected: "/login",
  },
  "the route in the query": {
    rule: login,
    args: [`${HOST}/?path=/login`],
    field: "match.paths",
    actual: "/",
    expected: "/login",
  },
  "GET instead of POST": {
    rule: { match: { methods: ["POST", "PUT"] } },
    args: [`${HOST}/login`],
    field: "match.methods",
    actual: "GET",
    expected: "POST, PUT",
  },
  "GET for a rule about HEAD": {
    rule: { match: { methods: ["HEAD"] } },
    args: ["GET", `${HOST}/login`],
    field: "match.methods",
    actual: "GET",
    expected: "HEAD",
    why: /a rule for HEAD does not count GET/,
  },
  "a CORS preflight for a rule that does not name OPTIONS": {
    rule: { match: { methods: ["PUT"] } },
    args: ["OPTIONS", `${HOST}/login`, ...PREFLIGHT],
    field: "match.methods",
    actual: "OPTIONS of a CORS preflight",
    expected: "PUT",
    why: /name OPTIONS/,
  },
  "the apex of a wildcard host": {
    rule: { match: { hosts: ["*.example.com"] } },
    args: ["https://example.com/login"],
    field: "match.hosts",
    actual: "example.com",
    expected: "*.example.com",
    why: /does not include example\.com itself/,
  },
  "a host below the named one": {
    rule: { match: { hosts: ["example.com"] } },
    args: ["https://www.example.com/login"],
    field: "match.hosts",
    actual: "www.example.com",
    expected: "example.com",
    why: /does not include hosts below it/,
  },
  "another host in the option --host": {
    rule: { match: { hosts: ["api.example.com"] } },
    args: ["/login", "--host", "api.example.net"],
    field: "match.hosts",
    actual: "api.example.net",
    expected: "api.example.com",
  },
  "a missing header field": {
    rule: { match: { headers: { "x-api-key": true } } },
    args: [`${HOST}/login`, "-H", "x-api-keys: abc"],
    field: "match.headers.x-api-key",
    actual: "absent",
    expected: "present",
  },
  "a header field that must be absent": {
    rule: { match: { headers: { "x-internal": false } } },
    args: [`${HOST}/login`, "-H", "X-Internal: 1"],
    field: "match.headers.x-internal",
    actual: '"1"',
    expected: "absent",
  },
  "another text in a header field": {
    rule: { match: { headers: { "x-plan": ["hidden-plan", "hidden-trial"] } } },
    args: [`${HOST}/login`, "-H", "x-plan: gold"],
    field: "match.headers.x-plan",
    actual: '"gold"',
    expected: /not shown/,
  },
  "another prefix in Authorization": {
    rule: { match: { headers: { authorization: { prefix: "Bearer hidden-" } } } },
    args: [`${HOST}/login`, "-H", "authorization: Bearer pk-1234567890123"],
    field: "match.headers.authorization",
    actual: /^(?!.*1234567890)/,
    expected: /not shown/,
  },
  "a missing query parameter": {
    rule: { match: { query: { export: true } } },
    args: [`${HOST}/login?exports=1`],
    field: "match.query.export",
    actual: "absent",
    expected: "present",
  },
  "another text in a query parameter": {
    rule: { match: { query: { format: "hidden-format" } } },
    args: [`${HOST}/login?format=json`],
    field: "match.query.format",
    actual: '"json"',
    expected: /not shown/,
  },
  "an address beside a network": {
    rule: { match: { ips: ["198.51.100.0/25"] } },
    args: [`${HOST}/login`, "--ip", "198.51.100.128"],
    field: "match.ips",
    actual: "198.51.100.128",
    expected: "198.51.100.0/25",
  },
  "an IPv6 address beside a network": {
    rule: { match: { ips: ["2001:db8:1::/48"] } },
    args: [`${HOST}/login`, "--ip", "2001:db8:2::1"],
    field: "match.ips",
    actual: "2001:db8:2::1",
    expected: "2001:db8:1::/48",
  },
  "a neighbouring country": {
    rule: { match: { countries: ["DE", "AT"] } },
    args: [`${HOST}/login`, "--cf", "country=ch"],
    field: "match.countries",
    actual: "CH",
    expected: "DE, AT",
  },
  "another network operator": {
    rule: { match: { asns: [64_496] } },
    args: [`${HOST}/login`, "--cf", "asn=AS64497"],
    field: "match.asns",
    actual: "AS64497",
    expected: "AS64496",
  },
  "a client that is no verified bot": {
    rule: { match: { bots: "verified" } },
    args: [`${HOST}/login`, "--cf", "verifiedBotCategory="],
    field: "match.bots",
    actual: /not|no/,
    expected: "verified",
  },
  "a bot of another category": {
    rule: { match: { bots: ["AI Crawler"] } },
    args: [`${HOST}/login`, "--cf", "verifiedBotCategory=Search Engine Crawler"],
    field: "match.bots",
    actual: "Search Engine Crawler",
    expected: "AI Crawler",
  },
  "an excepted path": {
    rule: { match: { except: { paths: ["/health"] } } },
    args: [`${HOST}/Health/`],
    field: "match.except.paths",
    result: "holds",
    actual: "/health",
    expected: "/health",
    why: /fulfils match\.except/,
  },
  "an exception of two conditions": {
    rule: { match: { except: { methods: ["GET"], headers: { "x-probe": true } } } },
    args: [`${HOST}/login`, "-H", "x-probe: 1"],
    field: "match.except.headers.x-probe",
    result: "holds",
    actual: '"1"',
    expected: "present",
  },
  "an excepted query parameter": {
    rule: { match: { except: { query: { probe: "hidden-probe" } } } },
    args: [`${HOST}/login?probe=hidden-probe`],
    field: "match.except.query.probe",
    result: "holds",
    actual: "hidd… (12 characters)",
    expected: /not shown/,
  },
  "an excepted address": {
    rule: { match: { except: { ips: ["198.51.100.0/24"] } } },
    args: [`${HOST}/login`, "-H", "cf-connecting-ip: 198.51.100.7"],
    field: "match.except.ips",
    result: "holds",
    actual: "198.51.100.7",
    expected: "198.51.100.0/24",
  },
  "an excepted country": {
    rule: { match: { except: { countries: ["DE"] } } },
    args: [`${HOST}/login`, "--cf", "country=DE"],
    field: "match.except.countries",
    result: "holds",
    actual: "DE",
    expected: "DE",
  },
  "an exempt address": {
    rule: { exempt: { ips: ["2001:db8::/32"] } },
    args: [`${HOST}/login`, "--ip", "2001:db8::7"],
    field: "exempt.ips",
    result: "holds",
    actual: "2001:db8::7",
    expected: "2001:db8::/32",
    why: /fulfils exempt/,
  },
  "an exempt secret": {
    rule: { exempt: { headers: { "x-probe": { secret: "PROBE_SECRET" } } } },
    args: [`${HOST}/login`, "-H", "x-probe: hidden-secret"],
    env: { PROBE_SECRET: "hidden-secret" },
    field: "exempt.headers.x-probe",
    result: "holds",
    actual: "a value",
    expected: "the value of the secret PROBE_SECRET",
  },
  "a rule for calls of programs": {
    rule: { for: "programs", key: "custom:tenant" },
    args: [`${HOST}/login`],
    field: "for",
    actual: "an HTTP request",
    expected: "a call of a program",
  },
  "a deployment with WEIR_MODE off": {
    args: [`${HOST}/login`],
    env: { WEIR_MODE: "off" },
    field: "WEIR_MODE",
    actual: "off",
    expected: "enforce or shadow",
  },
};
