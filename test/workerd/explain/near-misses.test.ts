import { describe, expect, it } from "vitest";
import type { ConfigInput, MatchInput } from "../../../src/config/index.ts";
import type { DescribedRequest } from "../../../src/explain/explanation.ts";
import { explainRule } from "./explaining.ts";

const HOST = "https://api.example.com";
const ip = (address: string) => ({ headers: { "cf-connecting-ip": address } });
const header = (value: string, name = "x-plan") => ({ headers: { [name]: value } });
const at = (path: string, method = "GET") => ({ url: HOST + path, method });

type Case = [
  miss: string,
  match: MatchInput,
  request: Partial<DescribedRequest>,
  /** The first condition that fails. */
  field: string,
  /** The value in the request, and a part of the note. */
  shown: [actual: string, note?: string],
  options?: Partial<ConfigInput>,
];

const PREFLIGHT = {
  ...at("/v1/a", "OPTIONS"),
  headers: { origin: "https://page.example.com", "access-control-request-method": "PUT" },
};

/** A request that is no preflight, because of one more field. */
function unlikePreflight(name: string, value: string) {
  return { ...PREFLIGHT, headers: { ...PREFLIGHT.headers, [name]: value } };
}

const cases: Case[] = [
  [
    "a path with a segment more",
    { paths: ["/users/:id"] },
    at("/users/7/edit"),
    "match.paths",
    ["/users/7/edit", "The nearest path is /users/:id."],
  ],
  [
    "a path with a segment less",
    { paths: ["/users/:id/edit"] },
    at("/users/7"),
    "match.paths",
    ["/users/7", "The nearest path is /users/:id/edit."],
  ],
  [
    "a path with another segment",
    { paths: ["/login", "/v1/users/:id"] },
    at("/v1/user/7"),
    "match.paths",
    ["/v1/user/7", "The nearest path is /v1/users/:id."],
  ],
  [
    "a parameter that its pattern refuses",
    { paths: ["/users/:id{[0-9]+}"] },
    at("/users/x7"),
    "match.paths",
    ["/users/x7", "The nearest path is /users/:id{[0-9]+}."],
  ],
  [
    "a path in another case",
    { paths: ["/Login"] },
    at("/login"),
    "match.paths",
    ["/login", "Only upper and lower case differ from /Login, and caseSensitivePaths is true"],
    { caseSensitivePaths: true },
  ],
  ["a path inside another", { paths: ["/login"] }, at("/v1/login"), "match.paths", ["/v1/login"]],
  [
    "a slash that is encoded twice, and no route",
    { paths: ["/files"] },
    at("/files%252Fa"),
    "match.paths",
    ["/files/a, which origins may read in", "The nearest path is /files."],
  ],
  ["another method", { methods: ["POST", "PUT"] }, at("/", "PATCH"), "match.methods", ["PATCH"]],
  [
    "GET for HEAD",
    { methods: ["HEAD"] },
    at("/", "GET"),
    "match.methods",
    ["GET", "a rule for HEAD does not count GET"],
  ],
  [
    "a preflight",
    { paths: ["/v1/*"] },
    PREFLIGHT,
    "match.methods",
    ["OPTIONS of a CORS preflight", "Only rules that name OPTIONS"],
  ],
  [
    "a preflight for a rule with methods",
    { methods: ["PUT"] },
    PREFLIGHT,
    "match.methods",
    ["OPTIONS of a CORS preflight", "Only rules that name OPTIONS"],
  ],
  ...["upgrade", "x_http-method.override"].map(
    (name): Case => [
      `a preflight with the field ${name}`,
      { methods: ["PUT"] },
      unlikePreflight(name, "websocket"),
      "match.methods",
      ["OPTIONS"],
    ],
  ),
  ["a preflight to another path", { paths: ["/v2/*"] }, PREFLIGHT, "match.paths", ["/v1/a"]],
  [
    "the host without a name below it",
    { hosts: ["*.example.com"] },
    { url: "https://example.com/" },
    "match.hosts",
    ["example.com", "*.example.com does not include example.com itself"],
  ],
  [
    "a host below a host",
    { hosts: ["example.com"] },
    { url: "https://www.example.com/" },
    "match.hosts",
    ["www.example.com", "does not include hosts below it"],
  ],
  [
    "another host",
    { hosts: ["example.com"] },
    { url: "https://example.net/" },
    "match.hosts",
    ["example.net"],
  ],
  [
    "an absent header field",
    { headers: { "x-plan": true } },
    {},
    "match.headers.x-plan",
    ["absent"],
  ],
  [
    "a header that must be absent",
    { headers: { "x-plan": false } },
    header("free"),
    "match.headers.x-plan",
    ['"free"'],
  ],
  [
    "another text in a header",
    { headers: { "x-plan": ["free", "trial"] } },
    header("pro"),
    "match.headers.x-plan",
    ['"pro"'],
  ],
  [
    "a header without the prefix",
    { headers: { "x-plan": { prefix: "pro-" } } },
    header("pro"),
    "match.headers.x-plan",
    ['"pro"'],
  ],
  [
    "a credential without the prefix",
    { headers: { authorization: { prefix: "Bearer sk-" } } },
    header("Bearer pk-123456789", "authorization"),
    "match.headers.authorization",
    ["Bear… (19 characters)"],
  ],
  [
    "an absent query parameter",
    { query: { export: true } },
    at("/?import=1"),
    "match.query.export",
    ["absent"],
  ],
  [
    "a query parameter that must be absent",
    { query: { export: false } },
    at("/?export=1"),
    "match.query.export",
    ['"1"'],
  ],
  [
    "another text in a query parameter",
    { query: { format: ["csv", "xlsx"] } },
    at("/?format=cs"),
    "match.query.format",
    ['"cs"'],
  ],
  [
    "the address after a network",
    { ips: ["198.51.100.0/25"] },
    ip("198.51.100.128"),
    "match.ips",
    ["198.51.100.128"],
  ],
  [
    "the IPv6 address before a network",
    { ips: ["2001:db8:1::/48"] },
    ip("2001:db8:0:ffff::1"),
    "match.ips",
    ["2001:db8:0:ffff::1"],
  ],
  [
    "another country",
    { countries: ["DE", "AT"] },
    { cf: { country: "CH" } },
    "match.countries",
    ["CH"],
  ],
  [
    "another network of an operator",
    { asns: [64_500] },
    { cf: { asn: 64_501 } },
    "match.asns",
    ["AS64501"],
  ],
  [
    "no verified bot",
    { bots: "verified" },
    { cf: { verifiedBotCategory: "" } },
    "match.bots",
    ["no verified bot"],
  ],
  [
    "a bot of another category",
    { bots: ["AI Crawler"] },
    { cf: { verifiedBotCategory: "Security" } },
    "match.bots",
    ["Security"],
  ],
  [
    "the second condition",
    { paths: ["/v1/*"], methods: ["POST"], query: { a: true } },
    at("/v1/x"),
    "match.methods",
    ["GET"],
  ],
];

describe("a rule that does not apply names the first condition that fails", () => {
  it.each(cases)("%s", async (_, match, request, field, [actual, note], options) => {
    const { applies, why, conditions } = await explainRule({ match }, request, options);
    const failed = conditions.filter(({ result }) => result === "fails");
    expect({ applies, failed: failed.map((each) => each.field) }).toEqual({
      applies: false,
      failed: [field],
    });
    const last = conditions.at(-1);
    expect(last?.actual).toContain(actual);
    if (note === undefined) expect(last?.note).toBeUndefined();
    else expect(last?.note).toContain(note);
    expect(why).toContain(
      `${field}: it has ${last?.actual}, and the rule demands ${last?.expected}`,
    );
  });
});
