import { describe, expect, it } from "vitest";
import { type ConditionsInput, defineConfig } from "../../../src/config/index.ts";
import { type CanonicalRequest, canonicalRequest } from "../../../src/request/canonical-request.ts";
import { createMatcher } from "../../../src/request/matcher.ts";

/** A request: its query, its header fields and Cloudflare's data about the client. */
interface Sent {
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>> | readonly (readonly [string, string])[];
  readonly cf?: object;
}

/**
 * Returns whether a rule counts a request if the conditions are in `match`, and whether it excepts
 * the request if they are in `except`. "yes" and "no" are certain. "unclear" counts the request in
 * both cases.
 */
function holds(conditions: ConditionsInput, { query = "", headers = {}, cf }: Sent) {
  const { rules } = defineConfig({
    rules: [
      { name: "match", match: conditions, limit: 1, window: 1 },
      { name: "except", match: { except: conditions }, limit: 1, window: 1 },
    ],
  });
  const request = new Request(`https://api.example.com/${query}`, {
    headers: new Headers(headers as [string, string][]),
  });
  if (cf) Object.defineProperty(request, "cf", { value: cf });
  const canonical = canonicalRequest(request, false) as CanonicalRequest;
  const counted = createMatcher(rules, false)(canonical).map(({ rule }) => rule.name);
  const [inMatch, inExcept] = [counted.includes("match"), !counted.includes("except")];
  if (inMatch && !inExcept) return "unclear";
  expect(inMatch, "a request that is excepted matches too").toBe(inExcept);
  return inMatch ? "yes" : "no";
}

type Result = "yes" | "no" | "unclear";

describe("a condition on a header field", () => {
  const plan = (value: string): Sent => ({ headers: { "x-plan": value } });
  const auth = (value: string): Sent => ({ headers: { authorization: value } });
  const PRESENT = { headers: { "x-plan": true } } as const;
  const NO_PLAN = { headers: { "X-Plan": false } } as const;
  const FREE = { headers: { "x-plan": "free" } } as const;
  const KEY = { headers: { authorization: { prefix: "Bearer sk-" } } } as const;

  it.each<[string, ConditionsInput, Sent, Result]>([
    ["true and a value", PRESENT, plan("a"), "yes"],
    ["true and no field", PRESENT, {}, "no"],
    ["true and an empty value", PRESENT, plan(""), "unclear"],
    ["true and two fields", PRESENT, plan("a, b"), "yes"],
    ["true and two empty fields", PRESENT, plan(", "), "unclear"],
    ["true and another spelling", PRESENT, { headers: { x_plan: "a" } }, "unclear"],
    ["true and two spellings", PRESENT, { headers: { x_plan: "a", "x-plan": "b" } }, "unclear"],
    ["false and no field", NO_PLAN, {}, "yes"],
    ["false and a value", NO_PLAN, plan("a"), "no"],
    ["false and an empty value", NO_PLAN, plan(""), "unclear"],
    ["false and another spelling", NO_PLAN, { headers: { "x.plan": "a" } }, "unclear"],
    ["a text and the same text", FREE, plan("free"), "yes"],
    ["a text and no field", FREE, {}, "no"],
    ["a text and an empty value", FREE, plan(""), "no"],
    ["a text and another text", FREE, plan("pro"), "no"],
    ["a text and a longer text", FREE, plan("free-for-all"), "no"],
    ["a text and other case", FREE, plan("FREE"), "unclear"],
    ["a text and quotes", FREE, plan('"free"'), "unclear"],
    ["a text and two fields", FREE, plan("free, pro"), "unclear"],
    ["a text and two other fields", FREE, plan("a, b"), "unclear"],
    ["a text and another spelling", FREE, { headers: { x_plan: "free" } }, "unclear"],
    ["a text and two spellings", FREE, { headers: { "x-plan": "free", x_plan: "b" } }, "unclear"],
    ["a text and a longer name", FREE, { headers: { "x-plans": "free" } }, "no"],
    ["a list and its second text", { headers: { "x-plan": ["a", "free"] } }, plan("free"), "yes"],
    ["a list and another text", { headers: { "x-plan": ["a", "b"] } }, plan("free"), "no"],
    [
      "a list and its prefix",
      { headers: { "x-plan": ["a", { prefix: "fr" }] } },
      plan("free"),
      "yes",
    ],
    ["a prefix and such a value", KEY, auth("Bearer sk-123"), "yes"],
    ["a prefix and the prefix alone", KEY, auth("Bearer sk-"), "yes"],
    ["a prefix and another value", KEY, auth("Bearer pk-123"), "no"],
    ["a prefix and no value", KEY, {}, "no"],
    ["a prefix and another scheme", KEY, auth("Token sk-123"), "unclear"],
    ["a prefix and no scheme", KEY, auth("sk-123"), "unclear"],
    ["a prefix and two spaces", KEY, auth("Bearer  sk-123"), "unclear"],
    ["a prefix and other case", KEY, auth("bearer SK-123"), "unclear"],
    ["a prefix and a key in a Basic credential", KEY, auth(`Basic ${btoa("sk-1:")}`), "no"],
    ["a prefix and a key in a parameter", KEY, auth('Bearer key="sk-1"'), "no"],
    ["a prefix and two credentials", KEY, auth("Bearer a sk-123"), "unclear"],
    ["a prefix and two fields", KEY, auth("Bearer pk-1, Bearer sk-1"), "unclear"],
    [
      "a prefix of User-Agent with commas",
      { headers: { "user-agent": { prefix: "Mozilla/5.0 (X11," } } },
      { headers: { "user-agent": "Mozilla/5.0 (X11, Linux)" } },
      "yes",
    ],
    [
      "two fields that hold",
      { headers: { "x-plan": "free", "x-a": true } },
      { headers: { "x-plan": "free", "x-a": "1" } },
      "yes",
    ],
    [
      "two fields, one of them absent",
      { headers: { "x-plan": "free", "x-a": true } },
      plan("free"),
      "no",
    ],
  ])("%s", (_, conditions, sent, expected) => {
    expect(holds(conditions, sent)).toBe(expected);
  });

  it("is unclear if the field was sent twice", () => {
    const headers: [string, string][] = [
      ["x-plan", "free"],
      ["X-Plan", "free"],
    ];
    expect(holds(FREE, { headers })).toBe("unclear");
    expect(holds(PRESENT, { headers })).toBe("yes");
  });
});

describe("a condition on a query parameter", () => {
  const PRESENT = { query: { export: true } } as const;
  const ABSENT = { query: { export: false } } as const;
  const CSV = { query: { export: "csv" } } as const;

  it.each<[ConditionsInput, string, Result]>([
    [PRESENT, "?export=csv", "yes"],
    [PRESENT, "?export=csv&export=xlsx", "yes"],
    [PRESENT, `?${"export=csv&".repeat(16)}`, "yes"],
    // More values are not decoded.
    [PRESENT, `?${"export=csv&".repeat(17)}`, "unclear"],
    [PRESENT, "?a=1", "no"],
    [PRESENT, "", "no"],
    [PRESENT, "?export", "unclear"],
    [PRESENT, "?export=", "unclear"],
    [PRESENT, "?Export=csv", "unclear"],
    [ABSENT, "?a=1", "yes"],
    [ABSENT, "?", "yes"],
    [ABSENT, "?export=csv", "no"],
    ...["export", "EXPORT=1", "export[]=1", "export[a]=1", "[export]=1", "%65xport[0]=1"].map(
      (query): [ConditionsInput, string, Result] => [ABSENT, `?${query}`, "unclear"],
    ),
    [ABSENT, "?%2565xport=1", "unclear"],
    [ABSENT, "?export%00x=1", "unclear"],
    [ABSENT, "?exports=1", "yes"],
    [ABSENT, "?a[b]=1", "yes"],
    ...["?", "?a=1", "?export=csv"].flatMap((query): [ConditionsInput, string, Result][] => [
      [PRESENT, `?${query}`, "unclear"],
      [CSV, `x%3Fexport=csv${query}`, "unclear"],
      [ABSENT, `x%25253fexport=csv${query}`, "unclear"],
    ]),
    [PRESENT, "x%3E?a=%3Fexport=1&b=?", "no"],
    [CSV, "?export=csv", "yes"],
    [CSV, "?export=%63sv&a=b", "yes"],
    [CSV, "?export=pdf", "no"],
    [CSV, "?a=csv", "no"],
    [CSV, "?export=CSV", "unclear"],
    [CSV, "?export=%22csv%22", "unclear"],
    [CSV, "?export=%2563sv", "unclear"],
    [CSV, "?export=csv&export=pdf", "unclear"],
    [CSV, "?export=pdf&export=xlsx", "unclear"],
    [CSV, "?export=pdf&EXPORT=csv", "unclear"],
    [CSV, "?export=pdf&export[]=csv", "unclear"],
    [CSV, "?%65xport=csv", "unclear"],
    [CSV, "?a=1;export=csv", "unclear"],
    [CSV, "?export=csv;a=1", "unclear"],
    [CSV, "?a=1;b=2", "no"],
    [{ query: { q: "a b" } }, "?q=a+b", "unclear"],
    [{ query: { q: { prefix: "a" } } }, "?q=a+b", "yes"],
    [{ query: { q: "a b" } }, "?q=a%20b", "yes"],
    [{ query: { q: { prefix: "ä" } } }, "?q=%C3%A4b", "yes"],
    [{ query: { q: { prefix: "a" } } }, `?q=a${"b".repeat(40_000)}`, "unclear"],
    [{ query: { a: true, b: false } }, "?a=1", "yes"],
    [{ query: { "filter[type]": "export" } }, "?filter[type]=export", "yes"],
    ...["filter[type]+", "filter[type]%0a", "filter[type", "[filter[type]]"].map(
      (name): [ConditionsInput, string, Result] => [
        { query: { "filter[type]": "export" } },
        `?${name}=export`,
        "unclear",
      ],
    ),
    [{ query: { a: true, b: false } }, "?a=1&b=1", "no"],
  ])("%j and %.60s: %s", (conditions, query, expected) => {
    expect(holds(conditions, { query })).toBe(expected);
  });
});

describe("a condition on the client's address", () => {
  const WORKERS = "2a06:98c0:3600::103";
  it.each<[string[], string | undefined, Result]>([
    [["198.51.100.0/24"], "198.51.100.7", "yes"],
    [["198.51.100.0/24"], "198.51.101.7", "no"],
    [["198.51.100.0/24"], "::ffff:198.51.100.7", "yes"],
    [["198.51.100.0/24"], "64:ff9b::198.51.100.7", "yes"],
    [["2001:db8::/32"], "2001:db8:1::1", "yes"],
    [["2001:db8::/32"], "2001:db8:1::1%eth0", "yes"],
    [["2001:db8::/32", "0.0.0.0/0"], "2001:db9::1", "no"],
    [["198.51.100.0/24"], undefined, "unclear"],
    [["198.51.100.0/24"], "", "unclear"],
    [["198.51.100.0/24"], "198.51.100.7, 203.0.113.7", "unclear"],
    [["198.51.100.0/24"], WORKERS, "no"],
    [["2a06:98c0::/29"], WORKERS, "unclear"],
    [["198.51.100.7", "198.51.100.0/24", "198.51.100.9/32"], "198.51.100.200", "yes"],
  ])("%j and %s: %s", (ips, address, expected) => {
    const headers: Record<string, string> =
      address === undefined ? {} : { "cf-connecting-ip": address };
    expect(holds({ ips }, { headers: { ...headers, "x-forwarded-for": "203.0.113.1" } })).toBe(
      expected,
    );
  });
});

describe("a condition on Cloudflare's data", () => {
  const DE = { countries: ["DE", "AT"] };
  const BOTS = { bots: "verified" } as const;
  const SEARCH = { bots: ["Search Engine Crawler", "Page Preview"] };
  const verified = (verifiedBot: unknown, more = {}) => ({
    botManagement: { verifiedBot },
    ...more,
  });
  it.each<[ConditionsInput, object | undefined, Result]>([
    [DE, { country: "DE" }, "yes"],
    [DE, { country: "AT" }, "yes"],
    [DE, { country: "FR" }, "no"],
    [DE, { country: "T1" }, "unclear"],
    [DE, { country: "XX" }, "unclear"],
    [DE, { country: null }, "unclear"],
    [DE, { country: "" }, "unclear"],
    [DE, {}, "unclear"],
    [DE, undefined, "unclear"],
    [{ countries: ["T1"] }, { country: "T1" }, "yes"],
    [{ countries: ["T1"] }, { country: "DE" }, "no"],
    [{ asns: [13335, 64500] }, { asn: 64500 }, "yes"],
    [{ asns: [13335] }, { asn: 64500 }, "no"],
    [{ asns: [13335] }, { asn: 0 }, "unclear"],
    [{ asns: [13335] }, {}, "unclear"],
    [{ asns: [13335] }, undefined, "unclear"],
    [BOTS, { verifiedBotCategory: "AI Crawler" }, "yes"],
    [BOTS, verified(true, { verifiedBotCategory: "" }), "yes"],
    [BOTS, verified(true), "yes"],
    [BOTS, verified(false), "no"],
    [BOTS, { verifiedBotCategory: "", botManagement: null }, "no"],
    [BOTS, {}, "unclear"],
    [BOTS, undefined, "unclear"],
    [SEARCH, { verifiedBotCategory: "Page Preview" }, "yes"],
    [SEARCH, { verifiedBotCategory: "AI Crawler" }, "no"],
    [SEARCH, { verifiedBotCategory: "" }, "no"],
    [SEARCH, verified(true), "unclear"],
    [SEARCH, {}, "unclear"],
    [{ ...DE, asns: [13335] }, { country: "DE", asn: 13335 }, "yes"],
    [{ ...DE, asns: [13335] }, { country: "DE" }, "unclear"],
    [{ ...DE, asns: [13335] }, { country: "FR" }, "no"],
  ])("%j and %j: %s", (conditions, cf, expected) => {
    expect(holds(conditions, cf ? { cf } : {})).toBe(expected);
  });
});

it("requires that all conditions of a rule hold, and all conditions of its exception", () => {
  const conditions = { paths: ["/*"], headers: { "x-a": "1" }, query: { b: true } };
  const both = { headers: { "x-a": "1" }, query: "?b=1" };
  expect(holds(conditions, both)).toBe("yes");
  expect(holds(conditions, { query: "?b=1" })).toBe("no");
  expect(holds({ ...conditions, paths: ["/other"] }, both)).toBe("no");
  expect(holds({ ...conditions, methods: ["POST"] }, both)).toBe("no");
});
