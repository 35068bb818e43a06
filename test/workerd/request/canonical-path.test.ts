import { describe, expect, it } from "vitest";
import { canonicalPath } from "../../../src/request/path.ts";

/**
 * Returns the canonical form of a path. Parses the URL first, as workerd does when a request
 * arrives.
 */
function canonical(path: string, caseSensitive = false) {
  return canonicalPath(new URL(`http://host${path}`).pathname, caseSensitive);
}

describe("a canonical path", () => {
  it.each([
    ["/login", "/login"],
    ["/login/", "/login"],
    ["/LOGIN", "/login"],
    ["/%6c%6F%67in", "/login"],
    ["/a/../login", "/login"],
    ["/a/%2e%2E/login", "/login"],
    ["/./login", "/login"],
    ["/login/.", "/login"],
    ["\\login", "/login"],
    ["/lo\tgin", "/login"],
    ["/", "/"],
    ["", "/"],
    ["/.well-known/x", "/.well-known/x"],
    ["/caf%C3%A9", "/café"],
    ["/CAF%C3%89", "/café"],
    ["/stra%C3%9Fe", "/straße"],
    ["/%CF%83%CF%82", "/σσ"],
    ["/a%20b", "/a b"],
    ["/login?x=/../y", "/login"],
  ])("is unambiguous if every origin reads it in the same way: %s becomes %s", (path, expected) => {
    expect(canonical(path)).toEqual({
      path: expected,
      isUnambiguous: true,
      variants: [expected],
      unstrippedVariants: [],
    });
  });

  it.each([
    ["//login", "/login"],
    ["/x//login", "/x/login"],
    ["/login;x=1", "/login"],
    ["/login;x=1/;y", "/login"],
    ["/login%3Bx=1", "/login"],
    ["/login%00", "/login"],
    ["/login%00.jpg", "/login"],
    ["/login%2f", "/login"],
    ["/%2Flogin", "/login"],
    ["/health%2f..%2flogin", "/login"],
    ["/health%5c..%5clogin", "/login"],
    ["/%256cogin", "/login"],
    ["/%25256cogin", "/login"],
    ["/%252525252525256cogin", "/login"],
    ["/%%36%63ogin", "/login"],
    ["/a/%252e%252e/login", "/login"],
    ["/login%20", "/login"],
    ["/login%0a", "/login"],
    ["/..%2f..%2flogin", "/login"],
    ["/login%3fx=1", "/login"],
    ["/login%23x", "/login"],
    ["/login%253fx=1", "/login"],
    ["/%u006cogin", "/login"],
    ["/%25u006cogin", "/login"],
    ["/x%u002f..%u002flogin", "/login"],
    ["/%C1%ACogin", "/login"],
    ["/%E0%81%ACogin", "/login"],
    ["/%F0%80%81%ACogin", "/login"],
    ["/x/..%C0%AFlogin", "/login"],
    ["/log%C4%B1n", "/login"],
    ["/log%C4%B0n", "/login"],
    ["/lo%0agin", "/login"],
    ["/log%E2%80%8Bin", "/login"],
    ["/log%C2%ADin", "/login"],
    ["/%EF%BD%8Cogin", "/login"],
    ["/%EF%BC%8Flogin", "/login"],
    ["/x/%EF%BC%8E%EF%BC%8E/login", "/login"],
    ["/cafe%CC%81", "/café"],
    ["/%E2%84%AAey", "/key"],
  ])("is ambiguous if some origins read it differently: %s becomes %s", (path, expected) => {
    expect(canonical(path)).toMatchObject({ path: expected, isUnambiguous: false });
  });

  it.each([
    // Some origins read `//host/path` as a network-path reference.
    ["//login", ["/login", "/"]],
    ["//x/login", ["/x/login", "/login"]],
    ["///x/login", ["/x/login", "/login"]],
    ["/\\x/login", ["/x/login", "/login"]],
    ["/%2fx/login", ["/x/login", "/login", "/%2fx/login"]],
    ["//x/a//login", ["/x/a/login", "/a/login"]],
    ["/login;x=1", ["/login"]],
    ["/login%00.jpg", ["/login"]],
    ["/%256cogin", ["/login"]],
    ["/api%2f..%2fx", ["/x", "/api/../x", "/api%2f..%2fx"]],
    ["/api/%2e%2e%2fx", ["/x", "/api/../x", "/api/..%2fx"]],
    ["/api%5c..%5cx", ["/x", "/api/../x", "/api%2f..%2fx"]],
    ["/a%2fb", ["/a/b", "/a%2fb"]],
    ["/a%252fb;c", ["/a/b", "/a%2fb"]],
    ["/a/%252e%252e/b", ["/b", "/a/../b"]],
    ["/a%3fb", ["/a", "/a?b"]],
    ["/a%u002fb", ["/a/b", "/a%u002fb"]],
    ["/log%ffin", ["/log%ffin", "/login"]],
    ["/caf%c3%a9%ff", ["/caf%c3%a9%ff", "/café"]],
    ["/a%EF%BC%8Fb", ["/a/b", "/a%2fb"]],
  ])("has a variant for each way in which an origin may read it: %s has %j", (path, expected) => {
    expect(canonical(path).variants).toEqual(expected);
  });

  it.each([
    // Some origins remove parameters before they split the path at escaped or full-width slashes.
    ["/login;%EF%BC%8Fx/%2f", "/login"],
    ["/login%2f%3b%EF%BC%BCx", "/login"],
    ["/a%2flogin;%5cx", "/a/login"],
    // Some origins drop an empty segment, so the dots remove the segment before it. Other origins
    // keep the empty segment, so the dots remove only the empty segment.
    ["/login/%20%2f..", "/login"],
    ["/login/;x%2f..", "/login"],
    ["/login/%EF%BB%BF%2f..", "/login"],
    ["/login/%252f%2f..", "/login"],
    ["/login%5cx%2f..", "/"],
  ])("has a variant for origins that decode less or in another order: %s", (path, variant) => {
    expect(canonical(path)).toMatchObject({ isUnambiguous: false });
    expect(canonical(path).variants).toContain(variant);
  });

  it.each([
    ["/;x/login", ["/;x/login", "/x/login"]],
    ["/%3bx/login", ["/;x/login", "/x/login"]],
    ["/%20/login", ["/ /login"]],
    ["/%00en/login", ["/\0en/login", "/en/login"]],
    ["/a%2f;x/login", ["/a/;x/login", "/a/x/login", "/a%2f;x/login"]],
    ["/login;x", ["/login;x"]],
    ["/login", []],
    ["/a%20b", []],
  ])("has variants for origins without path parameters: %s has %j", (path, expected) => {
    expect(canonical(path).unstrippedVariants).toEqual(expected);
  });

  it.each([
    ["/%ff/login", "/%ff/login"],
    ["/%zz", "/%zz"],
    ["/%", "/%"],
    ["/%e2%82/%6c", "/%e2%82/l"],
    ["/%6c%ff", "/l%ff"],
  ])("keeps escapes that are not UTF-8: %s becomes %s", (path, expected) => {
    expect(canonical(path).path).toBe(expected);
  });

  it("keeps its case when paths are case-sensitive", () => {
    expect(canonical("/Login/%41", true)).toEqual({
      path: "/Login/A",
      isUnambiguous: true,
      variants: ["/Login/A"],
      unstrippedVariants: [],
    });
  });

  it.each([
    ["two spellings of an accent", "/caf%C3%A9", "/cafe%CC%81"],
    [
      "30 accents in two orders",
      `/a${"\u0301\u0323".repeat(15)}`,
      `/a${"\u0323\u0301".repeat(15)}`,
    ],
    [
      "1,000 accents in two orders",
      `/a${"\u0301\u0323".repeat(500)}`,
      `/a${"\u0323\u0301".repeat(500)}`,
    ],
  ])("is equal for %s", (_, one, other) => {
    expect(canonical(one).path).toBe(canonical(other).path);
  });

  it("does not change when it is made canonical again", () => {
    for (const path of [
      ...["//A/%2e./b;c/", "/%252525", "/a%2f%2fb", "/x%00y", "/%25"],
      ...["/%C4%B1%CC%81", "/%C4%B0%CC%81"],
    ]) {
      const { path: once } = canonicalPath(path, false);
      expect(canonicalPath(once, false).path).toBe(once);
    }
  });

  // Random search found no path with more variants.
  it("has up to 44 variants, and up to 31 for origins without path parameters", () => {
    const most = "//b%EF%BC%9B%EF%BC%8FD%5Ch/.%2f.%20;%252f%cd%2f%3f";
    expect(canonical(most).variants).toHaveLength(44);
    const mostUnstripped = "//%EF%BC%BC5%5c%EF%BC%8F%2B%c0%bb/%3bf/.%2f";
    expect(canonical(mostUnstripped).unstrippedVariants).toHaveLength(31);
  });

  it.each([
    `/${"%25".repeat(5000)}`,
    `/${"%".repeat(15_000)}`,
    `/${"../".repeat(5000)}`,
    `/${";".repeat(15_000)}`,
    `/${"%ff".repeat(5000)}`,
    `/${"%2525".repeat(3000)}`,
    `/${"/".repeat(15_000)}`,
  ])("is computed for 15 KB of hostile input without an exception", (path) => {
    expect(canonicalPath(path, false).path).toMatch(/^\//);
  });
});
