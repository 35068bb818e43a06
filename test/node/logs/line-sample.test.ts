import { describe, expect, it } from "vitest";
import { lineSample } from "../../../cli/logs/progress.ts";

const START = "192.0.2.1 - alice [17/May/2015:10:05:03 +0000]";
const SHOWN = "192.0.2.1 - … [17/May/2015:10:05:03 +0000]";

describe("the sample of a broken line", () => {
  it.each([
    ["GET /a/b?x=1 token=SECRET HTTP/1.1", "GET /a/b…"],
    ['GET /a?x=\\"&token=SECRET b HTTP/1.1', "GET /a…"],
    ["GET /a%3Ftoken=SECRET b", "GET /a…"],
    ["GET /a\\x3ftoken=SECRET b", "GET /a…"],
    ["GET /a;jsessionid=SECRET b", "GET /a…"],
    ["GET /a SECRET HTTP/1.1", "GET /a…"],
    ["GET http://user:SECRET@host/x y HTTP/1.1", "GET …"],
    ["GET SECRET", "GET …"],
    ["Authorization: Bearer SECRET", "…"],
    ["SECRET", "…"],
  ])("shows of the request %j only %j", (request, shown) => {
    const start = request.startsWith("GET ") ? '"' : "";
    expect(lineSample(`${START} "${request}" 400 0 "https://a/?SECRET"`)).toBe(
      `${SHOWN} ${start}${shown}`,
    );
  });

  it.each([
    [`example.com ${START} "GET /a"`, `example.com ${SHOWN} "GET /a…`],
    ['SECRET - - [17/May/2015:10:05:03 +0000] "GET /a', "…"],
    [
      '192.0.2.1 SECRET SECRET [17/May/2015:99:05:03] "GET /a',
      '192.0.2.1 … … [17/May/2015:99:05:03] "GET /a…',
    ],
    ['192.0.2.1 - - [SECRET] "GET /', "192.0.2.1 - - […"],
    ['192.0.2.1 - [SECRET] [17/May/2015:10:05:03 +0000] "GET /', "192.0.2.1 - […"],
    ["192.0.2.1 - - SECRET", "…"],
    ["192.0.2.1 SECRET [", "192.0.2.1 … […"],
    ["export TOKEN=SECRET", "…"],
    ["GET /a?SECRET", "…"],
    ["", "…"],
    ["[", "{"],
  ])("has no text that may be a secret: %j", (line, shown) => {
    expect(lineSample(line)).toBe(shown);
  });

  it.each([
    [
      '{"time":"SECRET","authorization":"Bearer SECRET","x-api-key":"SECRET","query":"token=SECRET"}',
      '{"time": …, "authorization": …, "x-api-key": …, "query": …',
    ],
    ['{"uri":"/p\\u003ftoken=SECRET","cookie":"a=SECRET"', '{"uri": …, "cookie": …'],
    [
      '{"url":"https://u:SECRET@h/p","headers":{"cookie":["SECRET"]',
      '{"url": …, "headers": …, "cookie": …',
    ],
    ['{"token=SECRET":1,"a":"x,\\"SECRET\\":"}', '{"…": …, "a": …'],
    ['{"a":"SECRET', '{"a": …'],
    ['["SECRET"]', "{"],
  ])("has only the names of the fields of JSON: %j", (line, shown) => {
    expect(lineSample(line)).toBe(shown);
  });

  it("is at most 200 characters long, and takes little time for hostile lines", () => {
    const names = Array.from({ length: 1000 }, (_, i) => [`name${i}`, 1]);
    expect(lineSample(JSON.stringify(Object.fromEntries(names)))).toHaveLength(200);
    for (const part of ["{", "[", '{"', ',"a', "/", " ", "[1/", "192.0.2.1 "]) {
      expect(lineSample(part.repeat(100_000)).length).toBeLessThanOrEqual(200);
    }
  });
});
