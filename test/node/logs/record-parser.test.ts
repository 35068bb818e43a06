import { describe, expect, it } from "vitest";
import { fieldMap } from "../../../cli/logs/json-fields.ts";
import { createParser, recogniseFormat } from "../../../cli/logs/log-format.ts";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { SAMPLES } from "./json-samples.ts";

const AT = Date.UTC(2026, 10, 22, 8, 0, 1);

/** Parses records as the lines of one file. */
function parse(
  records: readonly object[],
  map: Readonly<Record<string, string>> = {},
  host?: string,
) {
  const lines = records.map((record) => JSON.stringify(record));
  const format = recogniseFormat(lines);
  if (format !== "json") throw new Error(`the format is ${format}`);
  const parser = createParser(format, lines, fieldMap(Object.entries(map)), host);
  const contents = lines.map((line) => parser.parse(line));
  const facts = parser.facts();
  return { contents, facts, parser };
}

const first = (...args: Parameters<typeof parse>) => parse(...args).contents[0] as LogRequest;

describe("JSON lines", () => {
  it.each(SAMPLES)("of %s are read without --map", (_, record) => {
    const { contents, facts } = parse([{ message: "started" }, record]);
    expect(contents).toEqual([
      undefined,
      expect.objectContaining({
        at: AT,
        method: "GET",
        target: "/a?b=c",
        ip: "192.0.2.1",
        status: 200,
        host: "example.com",
        headers: expect.objectContaining({ size: expect.any(Number) }),
      }),
    ]);
    expect((contents[1] as LogRequest).headers?.get("user-agent")).toBe("curl/8");
    for (const fact of ["ip", "host", "status", "header:user-agent"]) expect(facts).toContain(fact);
    for (const fact of ["country", "header:cookie"]) expect(facts).not.toContain(fact);
  });

  it.each([
    [1_795_334_401, "seconds"],
    [1_795_334_401.25, "seconds with a fraction"],
    ["1795334401.250", "nginx's seconds"],
    [1_795_334_401_250, "milliseconds"],
    ["1795334401250000", "microseconds"],
    [1_795_334_401_250_000_000, "nanoseconds"],
    ["2026-11-22T08:00:01.250Z", "ISO 8601"],
    ["2026-11-22 09:00:01,250 +0100", "ISO 8601 with a space and a comma"],
    ["2026-11-22T08:00:01", "ISO 8601 without a zone, in UTC"],
    ["22/Nov/2026:08:00:01 +0000", "the format of access logs"],
  ])("may have the time %s: %s", (time, _notation) => {
    const { at } = first([{ time, method: "GET", path: "/" }]);
    expect(Math.floor(at / 1000) * 1000).toBe(AT);
  });

  it.each([1e11, 1e14, 1e17])(
    "may have a time of 1973 in each fraction of a second: %i",
    (time) => {
      expect(first([{ time, method: "GET", path: "/" }]).at).toBe(1e11);
    },
  );

  it.each([
    ["/a", "b=c", "/a?b=c", undefined],
    ["/a", "?b=c", "/a?b=c", undefined],
    ["/a?b=c", "b=c", "/a?b=c", undefined],
    ["https://ann:secret@Example.com:8443/a#part", undefined, "/a", "example.com"],
    ["https://example.com?b", undefined, "/?b", "example.com"],
  ])(
    "with the URL %s and the query %s have the target %s and the host %s",
    (url, query, target, host) => {
      expect(first([{ time: AT, method: "GET", url, query }])).toMatchObject({ target, host });
    },
  );

  it("have the facts that --map names", () => {
    const record = {
      meta: { when: AT, "client.address": "192.0.2.1, 198.51.100.9" },
      req: { verb: "POST", full: "/a" },
      tenant: "t1",
      geo: "de",
      as: "64500",
      fp: "t13d",
      good_bot: true,
      size: 12,
      secs: 0.5,
      hops: ["a", "b"],
    };
    const map = {
      time: "meta.when",
      ip: "meta.client\\.address",
      method: "req.verb",
      path: "req.full",
      "header:X-Tenant": "tenant",
      "response-header:via": "hops",
      country: "geo",
      asn: "as",
      ja4: "fp",
      bot: "good_bot",
      "body-bytes": "size",
    };
    const { contents, facts } = parse([record], map, "example.com");
    expect(contents[0]).toEqual({
      at: AT,
      method: "POST",
      target: "/a",
      host: "example.com",
      ip: "192.0.2.1",
      status: undefined,
      headers: new Map([
        ["x-tenant", "t1"],
        ["content-length", "12"],
      ]),
      responseHeaders: new Map([["via", "a, b"]]),
      durationMs: undefined,
      cf: { country: "DE", asn: 64_500, botManagement: { ja4: "t13d", verifiedBot: true } },
    });
    expect([...facts].sort()).toEqual([
      ...["asn", "bot", "country", "header:content-length", "header:x-tenant", "host", "ip", "ja4"],
      ...["method", "response-header:via", "time", "url"],
    ]);
  });

  it.each<[given: unknown, cf: object | undefined]>([
    [false, { botManagement: { verifiedBot: false } }],
    ["true", { botManagement: { verifiedBot: true } }],
    ["false", { botManagement: { verifiedBot: false } }],
    ["-", { verifiedBotCategory: "" }],
    ["", { verifiedBotCategory: "" }],
    ["Search Engine Crawler", { verifiedBotCategory: "Search Engine Crawler" }],
    [undefined, undefined],
  ])("state verified bots as a flag or by their category: %j", (bot, cf) => {
    const record = { time: AT, method: "GET", url: "/", bot };
    expect(parse([record], { bot: "bot" }).contents).toMatchObject([{ cf }]);
  });

  it.each([
    ["{", "is no JSON object"],
    ["null", "is no JSON object"],
    ["[1]", "is no JSON object"],
    ['"text"', "is no JSON object"],
    ['{"time":1,"method":"GET","url":"/"', "is no JSON object"],
    ['{"method":"GET","url":"/","ip":"192.0.2.1"}', "has no time in time"],
    ['{"time":"yesterday","method":"GET","url":"/","ip":"192.0.2.1"}', "has no time in time"],
    [
      '{"time":"2026-02-30T08:00:00Z","method":"GET","url":"/","ip":"192.0.2.1"}',
      "has no time in time",
    ],
    [
      '{"time":"2026-02-20T08:00:00+90:00","method":"GET","url":"/","ip":"192.0.2.1"}',
      "has no time in time",
    ],
    ['{"time":1e300,"method":"GET","url":"/","ip":"192.0.2.1"}', "has no time in time"],
    ['{"time":1,"method":"GET","ip":"192.0.2.1"}', "has a method, but no URL"],
    ['{"time":1,"url":"/","ip":"192.0.2.1"}', "has a URL, but no method"],
    ['{"time":1,"method":"GET","url":"a","ip":"192.0.2.1"}', "has no URL that begins with"],
    ['{"time":1,"method":"GET","url":"/","ip":"a.example.com"}', "has no IP address in ip"],
    ['{"time":1,"method":"GET","url":"/"}', "has no IP address in ip"],
    [`${"[".repeat(100_000)}`, "is no JSON object"],
    [`${'{"a":'.repeat(100_000)}`, "is no JSON object"],
  ])("are broken: %.80s: %s", (line, reason) => {
    const { parser } = parse([{ time: 1, method: "GET", url: "/", ip: "192.0.2.1" }]);
    expect(parser.parse(line)).toContain(reason);
  });

  it.each(["[", "]", " ] ", "{}", '{"level":"info","msg":"started"}'])(
    "are ignored if they have no request: %s",
    (line) => {
      expect(parse([{ time: 1, method: "GET", url: "/" }]).parser.parse(line)).toBeUndefined();
    },
  );

  it.each<[program: string, fields: object, startsMs: number, tookMs: number | undefined]>([
    ["nginx", { msec: "1795334401.000", request_time: "0.250" }, -250, 250],
    ["Caddy", { ts: AT / 1000, duration: 0.25 }, -250, 250],
    ["pino", { time: AT, responseTime: 250 }, -250, 250],
    ["Workers Trace Events", { EventTimestampMs: AT, WallTimeMs: 250 }, 0, 250],
    ["no unit", { time: AT, duration: 250 }, 0, undefined],
    ["no number", { time: AT, duration_ms: "-" }, 0, undefined],
    ["a negative number", { time: AT, duration_ms: -1 }, 0, undefined],
    ["more than the time since 1970", { time: AT, duration_ms: 1e300 }, 0, undefined],
  ])("state how long a request took, and begin it at its start: %s", (_, fields, starts, took) => {
    const line = JSON.stringify({ method: "GET", url: "/", ...fields });
    for (const [withDurations, at, durationMs] of [
      [true, AT + starts, took],
      [false, AT, undefined],
    ] as const) {
      const parser = createParser("json", [line], new Map(), undefined, withDurations);
      expect(parser.parse(line)).toMatchObject({ at, durationMs });
    }
  });

  it.each([
    [{ duration: "took" }, { took: 0.25, time: AT }, -250],
    [{ "duration-ms": "took" }, { took: 250, time: AT }, -250],
    [
      { "duration-ms": "took", time: "began.start_time" },
      { took: 250, began: { start_time: AT } },
      0,
    ],
    [{ end: "done" }, { time: AT, done: AT + 250 }, 0],
  ])("state how long a request took in the fields of --map %j", (map, fields, starts) => {
    const line = JSON.stringify({ method: "GET", url: "/", ...fields });
    const parser = createParser("json", [line], fieldMap(Object.entries(map)), undefined, true);
    expect(parser.parse(line)).toMatchObject({ at: AT + starts, durationMs: 250 });
    expect(parser.facts()).toEqual(new Set(["time", "method", "url", "duration"]));
  });

  it("may have a comma at the end, and names that objects have anyway", () => {
    const { parser } = parse([{ time: 1, method: "GET", url: "/" }], { ip: "constructor.name" });
    expect(parser.parse('{"time":1,"method":"GET","url":"/"},')).toContain("constructor.name");
    const other = parse([{ time: 1, method: "GET", url: "/" }], { ip: "__proto__" }).parser;
    const line = '{"time":1,"method":"GET","url":"/","__proto__":"192.0.2.1"},';
    expect(other.parse(line)).toMatchObject({ ip: "192.0.2.1" });
  });
});
