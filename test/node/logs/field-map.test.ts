import { describe, expect, it } from "vitest";
import { fieldMap, fieldPath, numberAt, textAt } from "../../../cli/logs/json-fields.ts";

describe("--map", () => {
  it("takes a path for each fact, whose name may be in capitals", () => {
    const map = fieldMap([
      ["ip", "client.address"],
      ["Time", "a=b"],
      ["path", "u"],
      ["header:X-Key", "h.0"],
    ]);
    expect([...map]).toEqual([
      ["ip", ["client", "address"]],
      ["time", ["a=b"]],
      ["url", ["u"]],
      ["header:x-key", ["h", "0"]],
    ]);
  });

  it.each([
    ["address", "a", /no fact "address"\. Allowed: time, end, .*header:NAME, response-header:NAME/],
    ["header:", "a", /no fact "header:"/],
    ["header:a b", "a", /no fact/],
    ["cookie:a", "a", /no fact/],
    ["ip", "", /has an empty name/],
    ["ip", "a..b", /has an empty name/],
    ["ip", "a.", /has an empty name/],
  ])("refuses the fact %j with the path %j", (fact, path, message) => {
    expect(() => fieldMap([[fact, path]])).toThrow(message);
  });
});

describe("a path", () => {
  it.each([
    ["a", ["a"]],
    ["a.b.c", ["a", "b", "c"]],
    ["a\\.b.c", ["a.b", "c"]],
    ["a\\\\.b", ["a\\", "b"]],
    ["a\\", ["a\\"]],
    ["request_User-Agent", ["request_User-Agent"]],
    ["hops.0", ["hops", "0"]],
    ["a\nb", ["a\nb"]],
  ])("%j leads through %j", (text, path) => {
    expect(fieldPath(text)).toEqual(path);
  });

  it.each([
    [{ a: { b: "x" } }, "x", undefined],
    [{ a: { b: 5 } }, "5", 5],
    [{ a: { b: "5.5" } }, "5.5", 5.5],
    [{ a: { b: ["x", 1, null, {}] } }, "x, 1", undefined],
    [{ a: { b: "-" } }, undefined, undefined],
    [{ a: { b: "" } }, undefined, undefined],
    [{ a: { b: -1 } }, "-1", undefined],
    [{ a: { b: "1e999" } }, "1e999", undefined],
    [{ a: { b: null } }, undefined, undefined],
    [{ a: { b: true } }, undefined, undefined],
    [{ a: { b: {} } }, undefined, undefined],
    [{ a: { b: { x: 1, y: "z", w: null } } }, "x=1; y=z", undefined],
    [{ a: null }, undefined, undefined],
    [{ a: "b" }, undefined, undefined],
    [null, undefined, undefined],
  ])("in %j leads to the text %s and the number %s", (record, text, number) => {
    expect([textAt(record, ["a", "b"]), numberAt(record, ["a", "b"])]).toEqual([text, number]);
  });

  it("leads to no method that objects have anyway", () => {
    expect(textAt({}, ["constructor", "name"])).toBeUndefined();
    expect(textAt("text", ["length"])).toBeUndefined();
  });
});
