import { defineConfig } from "../../../src/config/index.ts";
import { parseAlternatives } from "../../../src/config/key.ts";
import type { Rule } from "../../../src/config/rule.ts";
import { allowOrigin } from "../../../src/http/response-headers.ts";
import { canonicalRequest } from "../../../src/request/canonical-request.ts";
import { clientAddress } from "../../../src/request/headers.ts";
import { identityOf } from "../../../src/request/identity.ts";
import { identityOfLimitKey } from "../../../src/request/limit-key.ts";
import { createMatcher } from "../../../src/request/matcher.ts";
import { isTooLong } from "../../../src/request/path.ts";
import { sentNamesOf } from "../../../src/request/sent-values.ts";
import { type Claims, readClaim } from "../../../src/request/token.ts";

/** The greatest size of a header field and of a path that Cloudflare accepts, in bytes. */
export const HEADER_BYTES = 64 * 1024;
export const PATH_BYTES = 16 * 1024;
/** The longest path with special characters that Weir accepts, in bytes. */
const MAX_PATH_BYTES = 4096;

export interface Reader {
  readonly name: string;
  readonly bytes: number;
  /** Returns a function that reads the text, or undefined if no request can contain the text. */
  readonly prepare: (text: string) => (() => unknown) | undefined;
}

const ROUTES = [
  ...["/login", "/api/*", "/*", "/:page", "/:a/:b", "/:a/*/c", "/users/:id{[0-9]+}"],
  ...["/files/:name{.+}", "/:rest{.+\\.php}", "/*/*/:id"],
];
const config = defineConfig({
  jwt: { secret: "JWT_SECRET" },
  rules: ROUTES.map((path, index) => ({
    name: `r${index}`,
    match: { paths: [path], except: { paths: ["/health/*"] } },
    limit: 1,
    window: 1,
  })),
});
const matchRules = createMatcher(config.rules, false);
const NUMBERS = Array.from({ length: 50 }, (_, index) => index);
/** Rules with conditions on the same fields and on many parameters. */
const conditional = defineConfig({
  rules: NUMBERS.map((number) => ({
    name: `c${number}`,
    match: {
      headers: {
        authorization: { prefix: `Bearer sk-${number}` },
        "x-plan": [`plan ${number}`, { prefix: `é${number}` }],
      },
      query: { api_key: `key ${number}`, [`api_key${number}`]: true, [`p${number}`]: true },
    },
    limit: 1,
    window: 1,
  })),
});
const matchConditions = createMatcher(conditional.rules, false);
/** Beginnings that give a path the largest number of variants. */
const OPENINGS = [
  "//x/..;%255c%ff/",
  "//x/..;/a%2f..%2fb;c%255c%ff%5c%2e%2e%5c/",
  "/a;b%5c%2f%2561%ff/",
  `//;x%2f%3b%255c%ff${encodeURIComponent("．／ ")}%u002e%20/%5c%00/;y/`,
];
/** A variable hides this module from TypeScript, because its imports need the types of workerd. */
const TOKEN = "../../../src/request/token.ts";
const { createClaimsReader } = (await import(/* @vite-ignore */ TOKEN)) as {
  createClaimsReader(
    jwt: object,
    secrets: ReadonlyMap<string, string>,
    timeoutMs: number,
    keepAlive: () => void,
  ): (headers: Headers) => Promise<Claims | undefined>;
};
const readClaims = createClaimsReader(
  { kind: "secret", secret: "JWT_SECRET", alg: "HS256", header: "authorization" },
  new Map([["JWT_SECRET", "x".repeat(32)]]),
  1000,
  () => {},
);

/**
 * Returns a text in the form that a header field has: with one character for each byte of the
 * text's UTF-8.
 */
function field(text: string): string {
  return Buffer.from(text, "utf8")
    .toString("latin1")
    .replace(/[\0\r\n]/g, " ");
}

function request(url: string, headers: Record<string, string> = {}): Request | undefined {
  try {
    return { url: new URL(url).href, method: "GET", headers: new Headers(headers) } as Request;
  } catch {
    return undefined;
  }
}

function header(name: string, key: string): Reader {
  return {
    name: `key ${key}`,
    bytes: HEADER_BYTES,
    prepare(text) {
      const sent = request("http://host/", { [name]: field(text) });
      return sent && prepareIdentity(sent, key);
    },
  };
}

function prefixed(name: string, key: string, before: string, after = ""): Reader {
  const one = header(name, key);
  return {
    ...one,
    name: `${one.name}, ${JSON.stringify(before)} in front`,
    prepare: (text) => one.prepare(before + text + after),
  };
}

function prepareIdentity(sent: Request, key: string) {
  const expression = [parseAlternatives(key) ?? []];
  return () => {
    const canonical = canonicalRequest(sent, false);
    if (!canonical) return undefined;
    return identityOf(expression, {
      request: canonical,
      path: canonical.path,
      params: {},
      ipv6Prefix: 64,
      readClaims: () => readClaims(sent.headers),
      computeCustom: async () => undefined,
    });
  };
}

function path(name: string, caseSensitive: boolean, encode: (text: string) => string): Reader {
  return {
    name,
    bytes: PATH_BYTES,
    prepare(text) {
      const sent = request(`http://host/${encode(text)}`);
      return (
        sent &&
        (() => {
          const canonical = canonicalRequest(sent, caseSensitive);
          return canonical && matchRules(canonical);
        })
      );
    },
  };
}

/**
 * Creates a reader that reads the longest path that Weir accepts. The path begins with
 * `opening`, so that it has many variants.
 */
function longestPath(opening: string, routed = false): Reader {
  return {
    name: `path, ${opening} in front${routed ? ", routed by an app" : ""}`,
    bytes: MAX_PATH_BYTES,
    prepare(text) {
      const { pathname } = new URL(`http://host${opening}${text}`);
      const targetOf = (length: number) => pathname.slice(0, length).replace(/%.?$/, "");
      const routedAs = (path: string) => (routed ? decodeURISafely(path) : undefined);
      let { length } = pathname;
      const isRefused = (path: string) => isTooLong(path) || isTooLong(routedAs(path) ?? "");
      while (isRefused(targetOf(length))) length = Math.floor(length * 0.98);
      const path = targetOf(length);
      const sent = request(`http://host${path}`);
      if (!sent) return undefined;
      return () => {
        const canonical = canonicalRequest(sent, false, routedAs(path));
        if (!canonical) throw new Error("the path is refused, so nothing is measured");
        return matchRules(canonical);
      };
    },
  };
}

function decodeURISafely(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path.replace(/%[0-7][0-9a-f]/gi, decodeURI);
  }
}

function query(key: string, before: string): Reader {
  return {
    name: `key ${key}, ${before}`,
    bytes: PATH_BYTES,
    prepare(text) {
      const sent = request(`http://host/?${before}${text}`);
      return sent && prepareIdentity(sent, key);
    },
  };
}

/** Creates a reader for the conditions of 50 rules. */
function conditions(
  place: string,
  bytes: number,
  prepare: (text: string) => Request | undefined,
): Reader {
  return {
    name: `conditions on ${place}`,
    bytes,
    prepare(text) {
      const sent = prepare(text);
      if (!sent) return undefined;
      return () => {
        const canonical = canonicalRequest(sent, false);
        return canonical && matchConditions(canonical);
      };
    },
  };
}

function conditionsOnHeader(name: string, before = ""): Reader {
  return conditions(`${name}, ${JSON.stringify(before)} in front`, HEADER_BYTES, (text) =>
    request("http://host/", {
      authorization: "Bearer sk-",
      "x-plan": "plan",
      [name]: field(before + text),
    }),
  );
}

function conditionsOnQuery(before: string): Reader {
  return conditions(`a query, ${JSON.stringify(before)} in front`, PATH_BYTES, (text) =>
    request(`http://host/?${before}${text}`, { authorization: "Bearer sk-", "x-plan": "plan" }),
  );
}

/** Creates a reader for the keys of 50 rules. */
function keys(
  kind: "cookie" | "query",
  bytes: number,
  prepare: (text: string) => Request | undefined,
  before = "",
): Reader {
  const names = NUMBERS.map((number) => `${kind === "cookie" ? "sid" : "api_key"}${number || ""}`);
  const rules = defineConfig({
    rules: names.map((name) => ({ name, key: `${kind}:${name}`, limit: 1, window: 1 })),
  });
  const sentNames = sentNamesOf(rules.rules);
  return {
    name: `50 keys ${kind}:NAME, ${JSON.stringify(before)} in front`,
    bytes,
    prepare(text) {
      const sent = prepare(before + text);
      if (!sent) return undefined;
      return () => {
        const canonical = canonicalRequest(sent, false, undefined, sentNames);
        for (const name of names) {
          if (kind === "cookie") canonical?.sent.cookieKey(name);
          else canonical?.sent.parameterKey(name);
        }
      };
    },
  };
}

function keysOfCookies(before: string): Reader {
  const prepare = (text: string) => request("http://host/", { cookie: field(text) });
  return keys("cookie", HEADER_BYTES, prepare, before);
}

function keysOfQuery(before: string): Reader {
  return keys("query", PATH_BYTES, (text) => request(`http://host/?${text}`), before);
}

function programKey(key: string): Reader {
  const rule = { ...(config.rules[0] as Rule), key: [parseAlternatives(key) ?? []] };
  return {
    name: `a program's ${key}`,
    bytes: HEADER_BYTES,
    prepare: (text) => () => identityOfLimitKey(rule, text, config).catch(() => {}),
  };
}

export const READERS: readonly Reader[] = [
  path("path", false, (text) => text),
  path("path by case", true, (text) => text),
  ...OPENINGS.map((opening) => longestPath(opening)),
  ...OPENINGS.map((opening) => longestPath(opening, true)),
  query("query:api_key", ""),
  query("query:api_key", "api_key="),
  query("query:api_key", "api_key"),
  header("x-api-key", "header:x-api-key"),
  header("user-agent", "header:user-agent"),
  header("authorization", "header:authorization"),
  prefixed("authorization", "header:authorization", "Bearer "),
  prefixed("authorization", "header:authorization", "Basic "),
  header("authorization", "jwt:sub"),
  prefixed("authorization", "jwt:sub", "Bearer "),
  prefixed("authorization", "jwt:sub", "Bearer eyJhbGciOiJIUzI1NiJ9."),
  header("cookie", "cookie:sid"),
  prefixed("cookie", "cookie:sid", "sid="),
  prefixed("cookie", "cookie:sid", "sid"),
  prefixed("cookie", "cookie:sid", 'sid="', '"'),
  ...["", "sid=", "sid", 'sid7="'].map(keysOfCookies),
  ...["", "api_key=", "api_key"].map(keysOfQuery),
  header("cf-connecting-ip", "ip"),
  conditionsOnHeader("authorization"),
  conditionsOnHeader("authorization", "Bearer "),
  conditionsOnHeader("x-plan"),
  conditionsOnQuery(""),
  conditionsOnQuery("api_key="),
  conditionsOnQuery("api_key"),
  conditionsOnQuery("p1&"),
  {
    name: "CF-Worker",
    bytes: HEADER_BYTES,
    prepare(text) {
      const headers = new Headers({
        "cf-connecting-ip": "2a06:98c0:3600::103",
        "cf-worker": field(text),
      });
      return () => clientAddress(headers, 64);
    },
  },
  {
    name: "Origin",
    bytes: HEADER_BYTES,
    prepare(text) {
      const sent = request("http://host/", { origin: field(text) });
      return sent && (() => allowOrigin(sent, new Headers()));
    },
  },
  {
    name: "Host",
    bytes: HEADER_BYTES,
    prepare(text) {
      const sent = request(`http://${text}/`);
      if (!sent?.url.endsWith("/") || sent.url.split("/").length > 4) return undefined;
      return () => canonicalRequest(sent, false);
    },
  },
  {
    name: "URL",
    bytes: HEADER_BYTES,
    prepare: (text) => () =>
      canonicalRequest({ url: text, method: "GET", headers: new Headers() } as Request, false),
  },
  {
    name: "claim",
    bytes: HEADER_BYTES,
    prepare: (text) => () => readClaim({ sub: text }, { kind: "jwt", name: "sub" }),
  },
  ...[
    "ip",
    "header:x-api-key",
    "header:authorization",
    "cookie:sid",
    "query:q",
    "path",
    "param:id",
    "host",
    "method",
    "jwt:sub",
    "custom:x",
  ].map(programKey),
];
