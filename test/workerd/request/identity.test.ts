import { describe, expect, it } from "vitest";
import { parseAlternatives } from "../../../src/config/key.ts";
import { type CanonicalRequest, canonicalRequest } from "../../../src/request/canonical-request.ts";
import {
  cachedIdentityOf,
  hashValues,
  identityOf,
  type KeyContext,
  readPart,
  SHARED_REACH,
} from "../../../src/request/identity.ts";
import type { Claims } from "../../../src/request/token.ts";

interface Sent {
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly params?: Record<string, string>;
  readonly cf?: IncomingRequestCfProperties | object;
  readonly claims?: Claims;
  readonly custom?: Record<string, string>;
}

function clientOf(key: string | string[], sent: Sent = {}) {
  const expression = [key].flat().map((text) => parseAlternatives(text) ?? []);
  return identityOf(expression, contextOf(sent));
}

async function identity(key: string | string[], sent: Sent = {}) {
  return (await clientOf(key, sent)).identity;
}

async function value(key: string, sent: Sent = {}) {
  for (const part of parseAlternatives(key) ?? []) {
    const present = await readPart(part, contextOf(sent));
    if (present) return present.value;
  }
  return undefined;
}

function contextOf(sent: Sent): KeyContext {
  const { url = "https://api.example.com/", method = "GET", headers = {}, params = {}, cf } = sent;
  const request = new Request(url, {
    method,
    headers: { "cf-connecting-ip": "203.0.113.7", ...headers },
    ...(cf && { cf: cf as IncomingRequestCfProperties }),
  });
  const canonical = canonicalRequest(request, false) as CanonicalRequest;
  return {
    request: canonical,
    path: canonical.path,
    params,
    ipv6Prefix: 64,
    readClaims: async () => sent.claims,
    computeCustom: async (name) => sent.custom?.[name],
  };
}

describe("the reach of an identity", () => {
  // The rules that a request may combine, each in the order in which its objects are asked.
  it.each<[(string | string[])[]]>([
    [["jwt:sub", "ip", "custom:name", "header:h", "param:id", "path", "host", "global"]],
    [["ip", "cookie:c", "param:id", "ja4", "asn", "country", "method", "global"]],
    [["ip", "query:q", "path"]],
    // A client can vary the second value, so it is denied by its address first.
    [["ip", ["ip", "header:h"]]],
    [["jwt:sub", ["jwt:sub", "ip"], "ip", ["path", "ip"], "header:h"]],
    // Fewer clients have both values than one of them.
    [[["header:h", "param:id"], "header:h", ["param:id", "path"], "param:id", "global"]],
  ])("grows in the order %j", async (keys) => {
    const all = {
      headers: { h: "1", cookie: "c=1" },
      url: "https://host.example/path?q=1",
      params: { id: "1" },
      cf: { country: "NZ", asn: 1, botManagement: { ja4: "1" } },
      claims: { sub: "1" },
      custom: { name: "1" },
    };
    const reaches = await Promise.all(keys.map(async (key) => (await clientOf(key, all)).reach));
    expect(reaches).toEqual([...new Set(reaches)].toSorted((a, b) => a - b));
  });

  it.each([
    ["jwt:sub", false],
    ["ip", false],
    ["custom:name", true],
    ["header:h", true],
    ["global", true],
  ])("tells whether other clients share it: %s", async (key, isShared) => {
    const sent = { headers: { h: "1" }, claims: { sub: "1" }, custom: { name: "1" } };
    expect((await clientOf(key, sent)).reach >= SHARED_REACH).toBe(isShared);
  });

  it("is that of the alternative that the request has", async () => {
    const key = "header:h | ip";
    expect(await clientOf(key)).toEqual(await clientOf("ip"));
    const sent = { headers: { h: "1" } };
    expect(await clientOf(key, sent)).toEqual(await clientOf("header:h", sent));
  });
});

describe("an identity whose hash is cached", () => {
  const sent = {
    url: "https://host.example/path?q=query",
    headers: { h: "header", cookie: "c=cookie" },
    params: { id: "param" },
    cf: { country: "NZ", asn: 64496, botManagement: { ja4: "ja4" } },
    claims: { sub: "claim" },
    custom: { name: "custom" },
  };

  it.each([
    ["ip"],
    ["header:h"],
    ["param:id"],
    ["host"],
    ["path"],
    ["method"],
    ["country"],
    ["asn"],
    ["ja4"],
    ["global"],
    ["header:none | ip"],
    ["header:none | param:id | jwt:sub"],
    ["header:none"],
    [["ip", "host"]],
    [["header:none", "param:none | path"]],
  ])("is available at once and unchanged for %j", async (key) => {
    const elements = [key].flat().map((text) => parseAlternatives(text) ?? []);
    const context = contextOf({ ...sent, method: "DELETE" });
    const { identity, reach } = await identityOf(elements, context);
    expect(cachedIdentityOf(elements, context)).toEqual({ identity, reach });
  });

  it.each([
    ["jwt:sub"],
    ["custom:name"],
    ["cookie:c"],
    ["query:q"],
    ["header:none | custom:name"],
    [["ip", "jwt:sub"]],
  ])("is not available at once for a key that needs parsing or a promise: %j", async (key) => {
    const elements = [key].flat().map((text) => parseAlternatives(text) ?? []);
    await identityOf(elements, contextOf(sent));
    expect(cachedIdentityOf(elements, contextOf(sent))).toBeUndefined();
  });

  it("is not available for a new client", () => {
    const elements = [parseAlternatives("header:h") ?? []];
    expect(cachedIdentityOf(elements, contextOf({ headers: { h: "new" } }))).toBeUndefined();
  });
});

describe("an identity", () => {
  it("is 22 characters of base64url, not the client's own value", async () => {
    const text = await identity("header:x-api-key", { headers: { "x-api-key": "secret" } });
    expect(text).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(await identity("ip")).toMatch(/^[A-Za-z0-9_-]{22}$/);
  });

  it.each<[string, string | string[], Sent, Sent]>([
    ["host", "host", { url: "https://a.example/" }, { url: "https://b.example/" }],
    ["path", "path", { url: "https://x/a" }, { url: "https://x/b" }],
    ["method", "method", { method: "GET" }, { method: "POST" }],
    ["query", "query:q", { url: "https://x/?q=1" }, { url: "https://x/?q=2" }],
    ["header", "header:h", { headers: { h: "1" } }, { headers: { h: "2" } }],
    ["cookie", "cookie:c", { headers: { cookie: "c=1" } }, { headers: { cookie: "c=2" } }],
    ["param", "param:id", { params: { id: "1" } }, { params: { id: "2" } }],
    ["jwt", "jwt:sub", { claims: { sub: "1" } }, { claims: { sub: "2" } }],
    [
      "a nested claim",
      "jwt:/app/org",
      { claims: { app: { org: "1" } } },
      { claims: { app: { org: "2" } } },
    ],
    ["a jwt's number", "jwt:id", { claims: { id: 1 } }, { claims: { id: 2 } }],
    ["custom", "custom:tenant", { custom: { tenant: "1" } }, { custom: { tenant: "2" } }],
    ["country", "country", { cf: { country: "DE" } }, { cf: { country: "FR" } }],
    ["asn", "asn", { cf: { asn: 1 } }, { cf: { asn: 2 } }],
    [
      "ja4",
      "ja4",
      { cf: { botManagement: { ja4: "a" } } },
      { cf: { botManagement: { ja4: "b" } } },
    ],
    [
      "ip",
      "ip",
      { headers: { "cf-connecting-ip": "203.0.113.1" } },
      { headers: { "cf-connecting-ip": "203.0.113.2" } },
    ],
  ])("by %s distinguishes clients with different values", async (_, key, one, other) => {
    expect(await identity(key, one)).toBe(await identity(key, one));
    expect(await identity(key, one)).not.toBe(await identity(key, other));
  });

  it("by global is the same for all clients", async () => {
    const other = { headers: { "cf-connecting-ip": "203.0.113.9" }, url: "https://x/y" };
    expect(await identity("global")).toBe(await identity("global", other));
  });

  it.each<[string, Sent, Sent]>([
    ["host", { url: "https://API.example.com./" }, { url: "https://api.example.com:8443/" }],
    ["path", { url: "https://x//A/%62/" }, { url: "https://x/a/b" }],
    ["method", { method: "HEAD" }, { method: "GET" }],
    ["header:h", { headers: { H: " v " } }, { headers: { h: "v" } }],
  ])("by %s is the same for two spellings", async (key, one, other) => {
    expect(await identity(key, one)).toBe(await identity(key, other));
  });

  it("takes the first alternative that the request carries", async () => {
    const key = "header:x-api-key | cookie:sid | ip";
    const cookie = { headers: { cookie: "a=b; sid=s" } };
    const both = { headers: { cookie: "a=b; sid=s", "x-api-key": "k" } };
    expect(await identity(key, both)).toBe(await identity("header:x-api-key", both));
    expect(await identity(key, cookie)).toBe(await identity("cookie:sid", cookie));
    expect(await identity(key)).toBe(await identity("ip"));
  });

  it("of a parameter with brackets is the same in every spelling, and absent beside a second spelling", async () => {
    const sent = (query: string) => identity("query:user[id]", { url: `https://x/?${query}` });
    const expected = await sent("user[id]=7");
    expect(expected).not.toBe(await sent("user[id]=8"));
    for (const name of [
      "user%5Bid%5D",
      "USER[ID]",
      "user[id]%20",
      "user_id_",
      "user[id",
      "[user[id]]",
    ]) {
      expect(await sent(`${name}=7`), name).toBe(expected);
      expect(await sent(`user[id]=8&${name}=7`), name).toBe(await identity("ip"));
    }
  });

  it("is not affected by many parameters with brackets that begin with another letter", async () => {
    const url = (query: string) => ({ url: `https://x/?${query}api_key=K1` });
    const columns = Array.from(
      { length: 40 },
      (_, column) => `columns[${column}][search][value]=x&`,
    );
    const expected = await identity("query:api_key", url(""));
    expect(await identity("query:api_key", url(columns.join("").repeat(4)))).toBe(expected);
  });

  it.each<[string, Sent]>([
    ["header:x-api-key", {}],
    ["header:x-api-key", { headers: { "x-api-key": "" } }],
    ["cookie:sid", { headers: { cookie: "sid=" } }],
    ["cookie:sid", { headers: { cookie: "xsid=1; sid2=2; sid" } }],
    ["cookie:sid", { headers: { cookie: "sid=real; sid=decoy" } }],
    ["query:key", { url: "https://x/?key=" }],
    ["query:key", { url: "https://x/?key=real&key=decoy" }],
    ["param:id", {}],
    ["param:__proto__", {}],
    ["jwt:sub", {}],
    ["jwt:sub", { claims: {} }],
    ["jwt:sub", { claims: { sub: "" } }],
    ["jwt:sub", { claims: { sub: { id: 1 } } }],
    ["jwt:sub", { claims: { sub: ["a"] } }],
    ["jwt:sub", { claims: { sub: true } }],
    ["jwt:sub.id", { claims: { sub: { id: "1" } } }],
    ["jwt:/a/b", {}],
    ["jwt:/a/b", { claims: {} }],
    ["jwt:/a/b", { claims: { "a/b": "1", "/a/b": "1", "a.b": "1" } }],
    ["jwt:/a/b", { claims: { a: null } }],
    ["jwt:/a/b", { claims: { a: "b" } }],
    ["jwt:/a/b", { claims: { a: { b: "" } } }],
    ["jwt:/a/b", { claims: { a: { b: { c: "1" } } } }],
    ["jwt:/a/b", { claims: { a: { b: ["1"] } } }],
    ["jwt:/a/b", { claims: { a: [{ b: "1" }] } }],
    ["jwt:/a/length", { claims: { a: ["1"] } }],
    ["jwt:/a/length", { claims: { a: "text" } }],
    ["jwt:/a/0", { claims: { a: "text" } }],
    ["jwt:/a/1", { claims: { a: ["1"] } }],
    ["jwt:/a/00", { claims: { a: ["1"] } }],
    ["jwt:/a/-", { claims: { a: ["1"] } }],
    ["jwt:/a/-1", { claims: { a: ["1"] } }],
    ["jwt:/a/at", { claims: { a: ["1"] } }],
    ["jwt:/__proto__/a", { claims: JSON.parse('{ "a": "1" }') }],
    ["jwt:/constructor/name", { claims: {} }],
    ["jwt:/a/__proto__/b", { claims: { a: { b: "1" } } }],
    ["jwt:/a/toString/name", { claims: { a: {} } }],
    ["jwt:__proto__", { claims: {} }],
    ["jwt:constructor", { claims: {} }],
    ["custom:tenant", {}],
    ["custom:tenant", { custom: { tenant: "" } }],
    ["country", {}],
    ["asn", {}],
    ["ja4", { cf: { botManagement: {} } }],
  ])(
    "by %s falls back to the address if the key is absent, empty or sent twice: %j",
    async (key, sent) => {
      expect(await identity(key, sent)).toBe(await identity("ip"));
    },
  );

  it.each(['sid="a b"', "sid=a%20b", "sid=%61%20b", "x=1;sid=a%20b ;y=2"])(
    "by a cookie is the same in each spelling: %s",
    async (cookie) => {
      const plain = await identity("cookie:sid", { headers: { cookie: "sid=a%20b" } });
      expect(await identity("cookie:sid", { headers: { cookie } })).toBe(plain);
    },
  );

  it("by a cookie does not depend on other cookies", async () => {
    const cookie = 'a={"x":1,"y":2}; sid=real; b=1 c=2, d';
    const alone = { headers: { cookie: "sid=real" } };
    expect(await identity("cookie:sid", { headers: { cookie } })).toBe(
      await identity("cookie:sid", alone),
    );
  });

  it("uses the address for a missing element of a list", async () => {
    const key = ["header:x-api-key", "path"];
    const from = (ip: string) => identity(key, { headers: { "cf-connecting-ip": ip } });
    expect(await from("203.0.113.1")).not.toBe(await from("203.0.113.2"));
  });

  it.each<[string, string[], Sent, Sent]>([
    [
      "a delimiter in a value",
      ["header:user", "header:role"],
      { headers: { user: "a_role_b", role: "c" } },
      { headers: { user: "a", role: "b_role_c" } },
    ],
    [
      "an empty boundary",
      ["header:user", "header:role"],
      { headers: { user: "ab", role: "c" } },
      { headers: { user: "a", role: "bc" } },
    ],
    [
      "a length in a value",
      ["header:user", "header:role"],
      { headers: { user: "11:header:role1:x", role: "y" } },
      { headers: { user: "1", role: "1:header:role1:xy" } },
    ],
  ])("is not confused by %s", async (_, key, one, other) => {
    expect(await identity(key, one)).not.toBe(await identity(key, other));
  });

  it("differs between kinds of keys with the same value", async () => {
    const value = "203.0.113.7";
    const ids = await Promise.all([
      identity("ip"),
      identity("header:a", { headers: { a: value } }),
      identity("header:b", { headers: { b: value } }),
      identity("cookie:a", { headers: { cookie: `a=${value}` } }),
      identity("query:a", { url: `https://x/?a=${value}` }),
      identity("param:a", { params: { a: value } }),
      identity("host", { url: `https://${value}/` }),
      identity("jwt:a", { claims: { a: value } }),
      identity("custom:a", { custom: { a: value } }),
    ]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("is short even for a long value", async () => {
    const long = await identity("header:h", { headers: { h: "x".repeat(100_000) } });
    expect(long).toHaveLength(22);
  });
});

describe("an identity with a secret", () => {
  const parts = [{ name: "ip", value: "203.0.113.7" }];
  const secrets = ["a".repeat(32), "b".repeat(32), undefined];

  it("differs for each secret and without one, even in one isolate", async () => {
    const made = async () => Promise.all(secrets.map((secret) => hashValues(parts, secret)));
    const first = await made();
    expect(new Set(first).size).toBe(3);
    // The second results come from the cache.
    expect(await made()).toEqual(first);
  });

  it("is HMAC-SHA-256, cut to 128 bits", async () => {
    const secret = new TextEncoder().encode("a".repeat(32));
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", secret, algorithm, false, ["sign"]);
    const text = new TextEncoder().encode("2:ip11:203.0.113.7");
    const mac = new Uint8Array(await crypto.subtle.sign("HMAC", key, text), 0, 16);
    const written = btoa(String.fromCharCode(...mac));
    const expected = written.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    expect(await hashValues(parts, "a".repeat(32))).toBe(expected);
  });
});

describe("a value above the maximum length", () => {
  const long = "x".repeat(8193);

  it.each<[string, Sent]>([
    ["header:h", { headers: { h: long } }],
    ["header:authorization", { headers: { authorization: `Bearer ${long}` } }],
    ["cookie:c", { headers: { cookie: `c=${long}` } }],
    ["query:q", { url: `https://x/?q=${long}` }],
    ["path", { url: `https://x/${long}` }],
    ["param:id", { params: { id: long } }],
    ["jwt:sub", { claims: { sub: long } }],
    ["custom:c", { custom: { c: long } }],
  ])("is absent: %s", async (key, sent) => {
    expect(await identity(key, sent)).toBe(await identity("ip"));
    expect(await identity(`${key} | method`, sent)).toBe(await identity("method"));
  });

  it("is longer than 8 KiB", async () => {
    const longest = { headers: { h: long.slice(1) } };
    expect(await identity("header:h", longest)).not.toBe(await identity("ip"));
  });
});

describe("a number in a claim", () => {
  it.each([2 ** 53, -(2 ** 53), 1e300, 1.5, 0.1, Number.NaN, Number.POSITIVE_INFINITY])(
    "is absent if a double does not hold it exactly: %j",
    async (id) => {
      expect(await identity("jwt:id", { claims: { id } })).toBe(await identity("ip"));
    },
  );

  it.each([
    [1000, "1000"],
    [1e3, "1000"],
    [-0, "0"],
    [2 ** 53 - 1, "9007199254740991"],
  ])("is written in digits: %j becomes %s", async (id, text) => {
    expect(await value("jwt:id", { claims: { id } })).toBe(text);
  });
});

describe("a key's value", () => {
  it.each<[string, Sent, string | undefined]>([
    ["header:plan", { headers: { plan: "pro" } }, "pro"],
    ["jwt:plan | header:plan", { headers: { plan: "pro" }, claims: { plan: "max" } }, "max"],
    ["jwt:plan | header:plan", { headers: { plan: "pro" } }, "pro"],
    ["jwt:/a/plan", { claims: { a: { plan: "pro" } } }, "pro"],
    ["jwt:/a/0/plan", { claims: { a: [{ plan: "pro" }] } }, "pro"],
    ["jwt:/a/1", { claims: { a: [1, 2] } }, "2"],
    ["jwt:/https:~1~1x.example~1plan", { claims: { "https://x.example/plan": "pro" } }, "pro"],
    ["jwt:/a~0b/~01", { claims: { "a~b": { "~1": "pro" } } }, "pro"],
    ["jwt:/a.b", { claims: { "a.b": "pro", a: { b: "max" } } }, "pro"],
    ["jwt:a.b", { claims: { "a.b": "pro", a: { b: "max" } } }, "pro"],
    ["jwt:/__proto__/a", { claims: JSON.parse('{ "__proto__": { "a": "pro" } }') }, "pro"],
    ["jwt:/a/b | jwt:c", { claims: { c: "pro" } }, "pro"],
    ["custom:plan", { custom: { plan: "pro" } }, "pro"],
    ["ip", {}, "203.0.113.7"],
    ["header:plan", {}, undefined],
    ["header:plan | jwt:plan", { headers: { plan: "" } }, undefined],
  ])("of %s with %j is %j, without the address as a fallback", async (key, sent, expected) => {
    expect(await value(key, sent)).toBe(expected);
  });
});
