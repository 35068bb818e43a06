import { describe } from "vitest";
import { type Refused, refuses, withRule } from "./fixtures.ts";

describe("refuses a response", () => {
  const response = (value: unknown, path: string, ...says: string[]): Refused => [
    JSON.stringify(value),
    withRule({ response: value }),
    `rules[0].response${path}`,
    ...says,
  ];
  refuses([
    ...[null, 429, "no", []].map((value) =>
      response(value, "", "allowed: an object with status, body, headers"),
    ),
    response({ header: {} }, ".header", 'did you mean "headers"?'),
    ...[200, 399, 600, 429.5, "429"].map((status) =>
      response({ status }, ".status", "allowed: a whole number from 400 to 599"),
    ),
    ...[5, true, null, ["no"]].map((body) =>
      response({ body }, ".body", "allowed: a text, or an object that can be written as JSON"),
    ),
    ...[null, "x", []].map((headers) =>
      response({ headers }, ".headers", "allowed: an object of header names"),
    ),
    ...[5, null, "a\r\nset-cookie: b", "a\nb", "a\0b", "é"].map((value) =>
      response(
        { headers: { "x-a": value } },
        '.headers["x-a"]',
        "a text of ASCII without line breaks",
      ),
    ),
    ...["", "a b", "a:b", "a\r\nb"].map((name) =>
      response(
        { headers: { [name]: "1" } },
        `.headers[${JSON.stringify(name)}]`,
        "allowed: the name of a header",
      ),
    ),
    ...[
      "Retry-After",
      "cache-control",
      "CDN-Cache-Control",
      "Cloudflare-CDN-Cache-Control",
      "Surrogate-Control",
      "Edge-Control",
      "x-accel-expires",
      "Last-Modified",
      "RateLimit-Policy",
      "x-ratelimit-limit",
      "content-length",
      "Transfer-Encoding",
      "access-control-allow-origin",
    ].map((name) =>
      response(
        { headers: { [name]: "1" } },
        `.headers["${name}"]`,
        `got "${name}"`,
        "any header except those that Weir or the transport controls",
      ),
    ),
    ...["vary", "etag", "RateLimit", "connection"].map((name) =>
      response(
        { headers: { [name]: "1" } },
        `.headers.${name}`,
        `got "${name}"`,
        "any header except those that Weir or the transport controls",
      ),
    ),
  ]);
});
