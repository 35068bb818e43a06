import { describe, expect, it } from "vitest";
import { withClientsUrls } from "../../../src/http/own-urls.ts";

const CLIENT = "https://shop.example/from?here";

/** Returns a field of a response after the origin's URLs in it have been turned back. */
function turned(
  value: string,
  { name = "location", base = "http://origin.example", client = CLIENT } = {},
): string | null {
  const response = new Response("body", { headers: { [name]: value } });
  return withClientsUrls(response, base, client).headers.get(name);
}

describe("a Location", () => {
  it.each([
    ["http://origin.example/a", "https://shop.example/a"],
    ["http://origin.example", "https://shop.example"],
    ["http://origin.example?a", "https://shop.example?a"],
    ["http://origin.example#a", "https://shop.example#a"],
    ["http://origin.example:80/a", "https://shop.example/a"],
    ["HTTP://Origin.EXAMPLE/A", "https://shop.example/A"],
    ["//origin.example/a", "//shop.example/a"],
    ["//ORIGIN.example:80", "//shop.example"],
    [
      "http://origin.example/a//b/../%2e?c=//origin.example/#http://origin.example",
      "https://shop.example/a//b/../%2e?c=//origin.example/#http://origin.example",
    ],
    ["http://user:pass@origin.example/a", "https://user:pass@shop.example/a"],
    ["http://origin.example/a,b", "https://shop.example/a,b"],
    [
      "http://origin.example/a, //origin.example/b, /c",
      "https://shop.example/a, //shop.example/b, /c",
    ],
  ])("that names the origin is turned back: %s", (value, expected) => {
    expect(turned(value)).toBe(expected);
  });

  it.each([
    "/a",
    "a",
    "?a",
    "",
    "//other.example/a",
    "https://origin.example/a",
    "http://origin.example:8080/a",
    "http://origin.example.evil.example/a",
    "http://evil-origin.example/a",
    "http://www.origin.example/a",
    "http://origin.example@evil.example/a",
    "http://origin.example:80@evil.example/a",
    "http://evil.example/http://origin.example/a",
    "http://evil.example/?a=http://origin.example/",
    "http://evil.example/?a=,//origin.example/",
    "//evil.example//origin.example/",
    "http:origin.example/a",
    "http:/origin.example/a",
    "ftp://origin.example/a",
    "myapp://origin.example/a",
    "mailto:a@origin.example",
    "http://",
    "//",
    "http://[",
    "http://[::1",
    "http://origin.example:99999/a",
    "http://origin.example:80:80/a",
    "http://%/",
    "http:// origin.example/",
    "http://origin.example\\@evil.example",
    ",",
    ", , ",
    "%",
  ])("with any other value is not changed: %s", (value) => {
    expect(turned(value)).toBe(new Headers({ a: value }).get("a"));
  });

  it.each([
    ["https://origin.example", "https://origin.example:443/a", "https://shop.example/a"],
    ["https://origin.example", "http://origin.example/a", "http://origin.example/a"],
    ["https://origin.example:8443", "//origin.example:8443/a", "//shop.example/a"],
    ["https://origin.example:8443", "//origin.example/a", "//origin.example/a"],
    ["http://[::1]:8080", "http://[0:0::1]:8080/a", "https://shop.example/a"],
    ["http://127.0.0.1:8080", "http://127.0.0.1:8080/a", "https://shop.example/a"],
    ["http://xn--bcher-kva.example", "http://xn--BCHER-kva.example/a", "https://shop.example/a"],
    ["http://origin.example/a/b", "http://origin.example/a/b/c", "https://shop.example/c"],
    ["http://origin.example/a/b", "http://origin.example/a/b?c", "https://shop.example/?c"],
    ["http://origin.example/a/b", "http://origin.example/a/b", "https://shop.example/"],
    ["http://origin.example/a/b", "http://origin.example/a/bc", "http://origin.example/a/bc"],
    ["http://origin.example/a/b", "http://origin.example/", "http://origin.example/"],
    ["http://origin.example/a/b", "//origin.example/a/b/c", "//shop.example/c"],
    ["http://origin.example/a/b", "/a/b/c", "/a/b/c"],
  ])("of the origin %s: %s becomes %s", (base, value, expected) => {
    expect(turned(value, { base })).toBe(expected);
  });

  it("leads to the port that the client used", () => {
    const client = "http://localhost:8787/x";
    expect(turned("http://origin.example/a", { client })).toBe("http://localhost:8787/a");
  });

  it("is not changed if the client's URL is not valid", () => {
    expect(turned("http://origin.example/a", { client: "http://a b/" })).toBe(
      "http://origin.example/a",
    );
  });
});

describe("a Refresh", () => {
  it.each([
    ["5; url=http://origin.example/a", "5; url=https://shop.example/a"],
    ["5;URL=http://origin.example/a", "5;URL=https://shop.example/a"],
    ["0; url='http://origin.example/a'", "0; url='https://shop.example/a'"],
    ['0; Url = "http://origin.example"', '0; Url = "https://shop.example"'],
    ["1.5, http://origin.example/a", "1.5, https://shop.example/a"],
    ["1 http://origin.example/a", "1 https://shop.example/a"],
    ["3;//origin.example/a", "3;//shop.example/a"],
    ["5; url=/a", "5; url=/a"],
    ["5", "5"],
    [
      "5; url=http://evil.example/?url=http://origin.example/",
      "5; url=http://evil.example/?url=http://origin.example/",
    ],
    ["http://origin.example/a", "http://origin.example/a"],
    ["; url=", "; url="],
  ])("%s becomes %s", (value, expected) => {
    expect(turned(value, { name: "refresh" })).toBe(expected);
  });
});

describe("a Link", () => {
  it.each([
    [
      '<http://origin.example/?p=2>; rel="next", <http://origin.example/?p=9,x>; rel=last',
      '<https://shop.example/?p=2>; rel="next", <https://shop.example/?p=9,x>; rel=last',
    ],
    ["<//origin.example/a>;rel=preload", "<//shop.example/a>;rel=preload"],
    ['</a>; rel="http://origin.example/rel"', '</a>; rel="http://origin.example/rel"'],
    ["<https://cdn.example/a>; rel=preload", "<https://cdn.example/a>; rel=preload"],
    ["< http://origin.example/a >; rel=next", "<https://shop.example/a>; rel=next"],
    ['</a>; title="x, <http://origin.example/q>"', '</a>; title="x, <http://origin.example/q>"'],
    ['</a>; title="\\"<http://origin.example/q>', '</a>; title="\\"<http://origin.example/q>'],
    ["<http://origin.example/a", "<http://origin.example/a"],
    ["http://origin.example/a", "http://origin.example/a"],
  ])("%s becomes %s", (value, expected) => {
    expect(turned(value, { name: "link" })).toBe(expected);
  });
});

describe("a response", () => {
  it("that names no URL of the origin is the same object", () => {
    const response = new Response("body", { headers: { location: "/a", link: "</b>; rel=next" } });
    expect(withClientsUrls(response, "http://origin.example", CLIENT)).toBe(response);
  });

  it("with a WebSocket is the same object", () => {
    const { 0: webSocket } = new WebSocketPair();
    const headers = { location: "http://origin.example/a" };
    const response = new Response(null, { status: 101, webSocket, headers });
    expect(withClientsUrls(response, "http://origin.example", CLIENT)).toBe(response);
  });
});
