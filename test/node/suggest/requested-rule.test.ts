import { describe, expect, it } from "vitest";
import { parseMatch, requestedRule } from "../../../cli/suggest/requested-rule.ts";
import { cpuTimeMs } from "../../../fuzz/property.ts";

describe("--match", () => {
  it.each([
    ["/login", { paths: ["/login"] }],
    ["POST /login", { methods: ["POST"], paths: ["/login"] }],
    ["POST,PUT /a, /b/*", { methods: ["POST", "PUT"], paths: ["/a", "/b/*"] }],
    ["post /login", { methods: ["post"], paths: ["/login"] }],
    ["DELETE", { methods: ["DELETE"] }],
    [
      "api.example.com *.example.org /x",
      { hosts: ["api.example.com", "*.example.org"], paths: ["/x"] },
    ],
    ["localhost", { hosts: ["localhost"] }],
    ["/:id{[0-9]{1,5}}/a, /b", { paths: ["/:id{[0-9]{1,5}}/a", "/b"] }],
    ["  GET \t /a,,/b, ", { methods: ["GET"], paths: ["/a", "/b"] }],
    ['{"paths":["/a"],"countries":["DE"]}', { paths: ["/a"], countries: ["DE"] }],
  ])("reads %j", (text, match) => {
    expect(parseMatch(text)).toEqual(match);
  });
});

describe("the options of a rule", () => {
  it("have every request, addresses, minutes and hours as their defaults", () => {
    const { name, match, key, windows } = requestedRule({});
    expect({ name, match, key }).toEqual({
      ...{ name: "all-requests", match: "every request", key: "ip" },
    });
    expect(windows.map(({ windowMs }) => windowMs)).toEqual([60_000, 3_600_000]);
  });

  it("have the notation of the configuration", () => {
    const { match, key, windows, rule } = requestedRule({
      match: "POST /api/:org/login",
      key: ["header:x-api-key | ip", "param:org"],
      window: ["month", "90", "1h"],
    });
    expect(rule.name).toBe("api-login");
    expect(match).toBe("POST /api/:org/login");
    expect(key).toBe("header:x-api-key | ip, param:org");
    expect(windows.map(({ windowMs }) => windowMs / 1000)).toEqual([90, 3600, 31 * 86_400]);
  });

  it.each([
    [{ match: "/login" }, "login"],
    [{ match: "/V1/Sign_In.php" }, "v1-sign_in-php"],
    [{ match: "/:id/*" }, "suggested"],
    [{ match: "/__proto__/x" }, "proto__-x"],
    [{ match: `/${"a".repeat(99)}` }, "a".repeat(64)],
    [{ match: "POST" }, "suggested"],
    [{ match: "/a", name: "b" }, "b"],
  ])("name the rule of %j %s", (options, name) => {
    expect(requestedRule(options).name).toBe(name);
  });

  it.each([
    [{ match: "" }, "--match is empty. Allowed: methods, hosts and paths"],
    [{ match: " , " }, "--match is empty."],
    [
      { match: "login" },
      "--match has \"login\", which is not a method. For a path, write '/login'.",
    ],
    [{ match: "{paths: /a}" }, "--match begins with { but is not valid JSON."],
    [{ match: "https://example.com/a" }, "Write the host and the path apart: 'example.com /a'."],
    [{ match: "example.com/a" }, "Write the host and the path apart: 'example.com /a'."],
    [{ match: "https:///a" }, '"https:///a", which is neither a path nor a host'],
    [{ match: "/a/../b" }, '--match (paths[0]): got "/a/../b"'],
    [{ match: "/:id{[}" }, '--match (paths[0]): got "/:id{[}"'],
    [{ match: "a_b:c" }, '--match (hosts[0]): got "a_b:c"'],
    [{ match: '{"path":["/a"]}' }, "--match (path): unknown field"],
    [{ match: '{"paths":"/a"}' }, "--match (paths): got"],
    [{ match: '{"paths":[{"toString":1}]}' }, "--match (paths[0]): got"],
    [{ match: '{"ips":["x"]}' }, "--match (ips"],
    [{ key: ["adress"] }, '--key: got "adress"'],
    [{ key: ["ip", "cookie:"] }, '--key: got "cookie:"'],
    [{ key: ["param:id"] }, "--key: "],
    [{ key: ["jwt:sub"] }, "--key: a log does not state jwt:sub. Name something that it states"],
    [{ key: ["ip", "ip | custom:a"] }, "--key: a log does not state custom:a."],
    [{ window: ["soon"] }, '--window: got "soon"'],
    [{ window: [""] }, '--window: got ""'],
    [{ window: ["0s"] }, '--window: got "0s"'],
    [{ window: ["1m", "60s"] }, "--window: two windows have the same length"],
    [{ window: "123456789".split("") }, "--window has 9 windows. Allowed: at most 8."],
    [{ name: "No" }, '--name: got "No"'],
  ])("refuse %j", (options, message) => {
    expect(() => requestedRule(options)).toThrow(
      expect.objectContaining({
        name: "CommandFailure",
        exitCode: 1,
        message: expect.stringContaining(message),
      }),
    );
  });

  it("refuse a hostile pattern without delay", () => {
    const start = cpuTimeMs();
    for (const match of ["{".repeat(50_000), "/a{b,".repeat(20_000), "a/".repeat(50_000)]) {
      expect(() => requestedRule({ match })).toThrow("--match");
    }
    expect(cpuTimeMs() - start).toBeLessThan(2000);
  });
});
