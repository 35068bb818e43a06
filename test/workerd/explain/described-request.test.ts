import { describe, expect, it } from "vitest";
import type { RuleInput } from "../../../src/config/index.ts";
import { type DescribedRequest, METHODS } from "../../../src/explain/explanation.ts";
import { explaining, explainRule } from "./explaining.ts";

const HOST = "https://api.example.com";
const RULE = { name: "api", limit: 5, window: "1m" } as const;
const at = (path: string) => ({ url: HOST + path });

describe("the field Host has the host of the URL", () => {
  it.each<[string, Partial<RuleInput>, boolean]>([
    ["a key reads it", { key: ["header:host", "host"] }, true],
    ["a condition demands it", { match: { headers: { host: true } } }, true],
    [
      "a condition demands its text",
      { match: { headers: { host: "api.example.com:8787" } } },
      true,
    ],
    ["an exception demands it", { match: { except: { headers: { host: true } } } }, false],
  ])("if %s", async (_, fields, applies) => {
    const url = "http://api.example.com:8787/";
    const explained = await explainRule(fields, { url, headers: { Host: "other.example.com" } });
    expect(explained.applies).toBe(applies);
    if (!fields.key) return;
    expect(explained.key.map(({ alternatives }) => alternatives[0]?.value)).toEqual([
      "api.… (20 characters)",
      "api.example.com",
    ]);
  });
});

describe("a description that is no request", () => {
  it.each<[string, Partial<DescribedRequest>, string, RegExp]>([
    ["a method that no Worker receives", { method: "FOO" }, "method", /: GET, HEAD, .*, QUERY\.$/],
    ["a method with a space", { method: "GE T" }, "method", /GET/],
    ["CONNECT", { method: "CONNECT" }, "method", /GET/],
    ["a name with a space", { headers: { "a b": "1" } }, "headers", /valid names and values/],
    ["a value with a line break", { headers: { a: "1\n2" } }, "headers", /valid names and values/],
    ["a user and a password", { url: "http://u:p@localhost/x" }, "url", /no user and no password/],
    ["a body of GET", { body: "" }, "body", /left out with GET/],
    ["a long body", { method: "PUT", body: "ä".repeat(32_769) }, "body", /at most 65536 bytes/],
    ["a path", { url: "/x" }, "url", /absolute URL of http or https/],
    ["another scheme", { url: "ftp://example.com/" }, "url", /absolute URL of http or https/],
    ["a long URL", at(`/${"a".repeat(16_384)}`), "url", /at most 16384 characters/],
    [
      "too many slashes",
      at("//a".repeat(65)),
      "url",
      /more than 4096 characters or 128 slashes\..* 414/,
    ],
    ["too many characters", at(`/%61${"a".repeat(4096)}`), "url", /more than 4096 characters/],
  ])("is refused with the name of its field: %s", async (_, described, field, allowed) => {
    await expect(explaining({ rules: [RULE] })(described)).rejects.toMatchObject({
      name: "DescriptionError",
      field,
      message: expect.stringMatching(allowed),
    });
  });

  it("is not refused at the bounds", async () => {
    const explain = explaining({ rules: [RULE] });
    for (const path of ["//a".repeat(64), `/%61${"a".repeat(4092)}`, `/${"a".repeat(16_300)}`]) {
      expect((await explain(at(path))).outcome).toBe("allowed");
    }
  });
});

it.each(METHODS)("explains the method %s", async (method) => {
  const { request } = await explaining({ rules: [RULE] })({ method });
  expect(request).toMatchObject({ sentMethod: method, method: method === "HEAD" ? "GET" : method });
});

it.each(["shadow", "off"])("refuses a path that is too long if WEIR_MODE is %s", async (mode) => {
  const explain = explaining({ rules: [RULE] }, { WEIR_MODE: mode });
  await expect(explain(at("//a".repeat(65)))).rejects.toMatchObject({ field: "url" });
});
