import { describe, expect, it } from "vitest";
import { clientText } from "../../../cli/replay/log-rules.ts";

describe("a client in a report", () => {
  it.each([
    ["header", "referer"],
    ["header", "x-api-key"],
    ["cookie", "session"],
    ["query", "token"],
  ] as const)("has only the start and a hash of a value of %s:%s", (kind, name) => {
    const value = "https://user:password@example.com/reset/1234?token=5678";
    expect(clientText({ kind, name }, value)).toMatch(/^http…[\w-]{10}$/);
  });

  it.each([
    ["user-agent", "curl/8"],
    ["origin", "https://example.com"],
    ["host", "example.com"],
  ])("has the whole value of header:%s", (name, value) => {
    expect(clientText({ kind: "header", name }, value)).toBe(value);
  });

  it("has the start and a hash of a long value", () => {
    const long = "a".repeat(1000);
    expect(clientText({ kind: "param", name: "id" }, long)).toMatch(/^a{40}…[\w-]{10}$/);
    expect(clientText({ kind: "param", name: "id" }, "a".repeat(80))).toBe("a".repeat(80));
  });
});
