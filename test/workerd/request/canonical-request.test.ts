import { describe, expect, it } from "vitest";
import { canonicalRequest } from "../../../src/request/canonical-request.ts";

function read(url: string, caseSensitivePaths = false) {
  const request = { url, method: "GET", headers: new Headers() } as Request;
  return canonicalRequest(request, caseSensitivePaths);
}

describe("a request's host and path", () => {
  it("are the same when a URL arrives again", () => {
    for (let time = 0; time < 3; time++) {
      expect(read("https://API.example.com.:8443/A/b/")).toMatchObject({
        host: "api.example.com",
        path: "/a/b",
        isUnambiguous: true,
      });
      expect(read("https://other.example.com/A/b/")?.host).toBe("other.example.com");
      expect(read("https://api.example.com/a//b")).toMatchObject({
        path: "/a/b",
        isUnambiguous: false,
      });
    }
  });

  it("keep or fold their case as configured, in either order", () => {
    for (let time = 0; time < 2; time++) {
      expect(read("https://api.example.com/Case", true)?.path).toBe("/Case");
      expect(read("https://api.example.com/Case", false)?.path).toBe("/case");
    }
  });

  it("do not depend on the query", () => {
    for (const query of ["?a=1", "?a=2", "", "?a=3#?a=4", "?a=5/../x", `?a=${"6".repeat(500)}`]) {
      const request = read(`https://api.example.com/q${query}`);
      expect(request).toMatchObject({ host: "api.example.com", path: "/q" });
      expect(request?.search).toBe(/[^#]*/.exec(query)?.[0]);
    }
  });

  it.each(["https://api.example.com#/a?b", "https://a?b@api.example.com/a", "https://a, b/", "/a"])(
    "are refused for %s, before and after a similar URL",
    (url) => {
      for (let time = 0; time < 2; time++) {
        expect(read(url)).toBeUndefined();
        expect(read(`https://api.example.com/a${url}`)?.host).toBe("api.example.com");
      }
    },
  );

  it("are correct after more URLs than the cache holds", () => {
    for (let time = 0; time < 2; time++) {
      for (let number = 0; number < 2000; number++) {
        const url = `https://h${number}.example.com/p${number}?q=${number}`;
        expect(read(url)).toMatchObject({ host: `h${number}.example.com`, path: `/p${number}` });
      }
    }
  });
});

describe("a long path", () => {
  const read = (path: string, routedPath?: string) =>
    canonicalRequest(new Request(`https://api.example.com${path}`), false, routedPath);

  it.each([
    ["printable ASCII of any length", `/${"a".repeat(16_000)}`],
    ["any number of segments of letters", `/${"a/".repeat(8000)}`],
    ["4,096 characters with escapes", `/${"%e6%97%a5".repeat(455)}`],
    ["128 slashes with an escape", `/${"a/".repeat(127)}%61`],
  ])("is accepted: %s", (_, path) => {
    expect(read(path)).toBeDefined();
  });

  it.each([
    ["more than 4,096 characters with escapes", `/${"%e6%97%a5".repeat(456)}`],
    ["more than 128 slashes with an escape", `/${"a/".repeat(128)}%61`],
    ["escaped slashes", `/${"a%2f".repeat(128)}`],
    ["slashes that are escaped twice", `/${"a%252f".repeat(128)}`],
    ["backslashes", `/${"a%5c".repeat(128)}`],
    ["full-width slashes", `/${"a%ef%bc%8f".repeat(128)}`],
  ])("is refused: %s", (_, path) => {
    expect(read(path)).toBeUndefined();
  });

  it.each([
    ["the same path", `/${"a".repeat(4092)}%3b`, `/${"a".repeat(4092)}%3b`],
    ["the path without escapes", `/${"%e6%97%a5".repeat(455)}`, `/${"日".repeat(455)}`],
    ["the path as sent", `/${"%62".repeat(1365)}`, `/${"a/".repeat(125)}..//b`],
  ])("is bounded apart from the path by which an app routed it: %s", (_, path, routed) => {
    expect(read(path, routed)).toBeDefined();
    expect(read(path, `${routed}${"%61".repeat(1400)}`)).toBeUndefined();
    expect(read(path, `${routed}${"%2f".repeat(128)}`)).toBeUndefined();
    expect(read(`${path}${"%61".repeat(1400)}`, routed)).toBeUndefined();
  });
});
