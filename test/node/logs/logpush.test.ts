import { describe, expect, it } from "vitest";
import { createParser, recogniseFormat } from "../../../cli/logs/log-format.ts";

const AT = Date.UTC(2026, 10, 22, 8, 0, 1);

const RECORD = {
  EdgeStartTimestamp: "2026-11-22T08:00:01Z",
  ClientRequestMethod: "POST",
  ClientRequestHost: "api.example.com",
  ClientRequestURI: "/v1/items?page=2",
  ClientRequestPath: "/v1/items",
  ClientRequestUserAgent: "curl/8",
  ClientRequestReferer: "",
  ClientRequestBytes: 2048,
  ClientIP: "2001:db8::1",
  ClientCountry: "de",
  ClientASN: 64_500,
  EdgeResponseStatus: 201,
  JA4: "t13d1516h2",
  VerifiedBotCategory: "",
};

function parse(records: readonly object[]) {
  const lines = records.map((record) => JSON.stringify(record));
  expect(recogniseFormat(lines)).toBe("json");
  const parser = createParser("json", lines, new Map(), undefined);
  const contents = lines.map((line) => parser.parse(line));
  return { contents, facts: parser.facts() };
}

describe("Cloudflare's workers_trace_events", () => {
  it("state the method, the URL and the status", () => {
    const request = { RayID: "7e9a", Request: { URL: "https://example.com/a", Method: "GET" } };
    const { contents } = parse([
      {
        Event: { ...request, Response: { Status: 404 } },
        EventTimestampMs: AT,
        EventType: "fetch",
      },
      { Event: { Cron: "* * * * *" }, EventTimestampMs: AT, EventType: "scheduled" },
    ]);
    const expected = { at: AT, method: "GET", host: "example.com", target: "/a", status: 404 };
    expect(contents).toEqual([expect.objectContaining(expected), undefined]);
  });
});

describe("Cloudflare's http_requests", () => {
  it("state the host, the country, the network, JA4 and bots, but not the length of the body", () => {
    const { contents, facts } = parse([RECORD]);
    expect(contents).toEqual([
      {
        at: AT,
        method: "POST",
        target: "/v1/items?page=2",
        host: "api.example.com",
        ip: "2001:db8::1",
        status: 201,
        headers: new Map([["user-agent", "curl/8"]]),
        durationMs: undefined,
        responseHeaders: undefined,
        cf: {
          country: "DE",
          asn: 64_500,
          botManagement: { ja4: "t13d1516h2" },
          verifiedBotCategory: "",
        },
      },
    ]);
    expect([...facts].sort()).toEqual([
      ...["asn", "bot", "country", "header:referer", "header:user-agent", "host", "ip", "ja4"],
      ...["method", "status", "time", "url"],
    ]);
  });

  it.each([
    ["2026-11-22T08:00:01Z", AT],
    ["2026-11-22T08:00:01.123456789Z", AT + 123],
    [AT / 1000, AT],
    [`${AT}000000`, AT],
  ])("have the time %s", (EdgeStartTimestamp, at) => {
    expect(parse([{ ...RECORD, EdgeStartTimestamp }]).contents).toMatchObject([{ at }]);
  });

  it("have times in nanoseconds that are more exact than numbers of JavaScript", () => {
    const line = JSON.stringify(RECORD).replace('"2026-11-22T08:00:01Z"', "1795334401123456789");
    const parser = createParser("json", [line], new Map(), undefined);
    const { at } = parser.parse(line) as { at: number };
    expect(Math.floor(at)).toBe(AT + 123);
  });

  it("state the custom fields of the zone, also if only a later record has them", () => {
    const { contents, facts } = parse([
      { ...RECORD, RequestHeaders: {}, ResponseHeaders: {}, Cookies: {} },
      {
        ...RECORD,
        VerifiedBotCategory: "Search Engine Crawler",
        RequestHeaders: { "x-api-key": "k1", accept: "text/html" },
        ResponseHeaders: { "x-cost": "3" },
        Cookies: { Session: "s1", theme: "dark" },
      },
    ]);
    expect(contents).toMatchObject([
      { headers: new Map([["user-agent", "curl/8"]]), cf: { verifiedBotCategory: "" } },
      {
        headers: new Map([
          ["user-agent", "curl/8"],
          ["cookie", "Session=s1; theme=dark"],
          ["x-api-key", "k1"],
          ["accept", "text/html"],
        ]),
        responseHeaders: new Map([["x-cost", "3"]]),
        cf: { verifiedBotCategory: "Search Engine Crawler" },
      },
    ]);
    expect([...facts].filter((fact) => fact.includes("header:")).sort()).toEqual([
      ...["header:accept", "header:cookie", "header:referer", "header:user-agent"],
      ...["header:x-api-key", "response-header:x-cost"],
    ]);
  });

  it.each([
    [{ EdgeEndTimestamp: "2026-11-22T08:00:03Z", OriginResponseDurationMs: 90 }, 2000],
    [{ EdgeEndTimestamp: "2026-11-22T08:00:01.350Z" }, 350],
    [{ OriginResponseDurationMs: 90 }, 90],
    [{ EdgeEndTimestamp: "", OriginResponseDurationMs: 90 }, 90],
    [{ EdgeEndTimestamp: "2026-11-22T08:00:00Z" }, undefined],
  ])("state how long a request took: %j", (fields, durationMs) => {
    const line = JSON.stringify({ ...RECORD, ...fields });
    const parser = createParser("json", [line], new Map(), undefined, true);
    expect(parser.parse(line)).toMatchObject({ at: AT, durationMs });
    expect(parser.facts().has("duration")).toBe(durationMs !== undefined);
  });

  it("state only the fields that the job was set up to write", () => {
    const { EdgeStartTimestamp, ClientRequestMethod, ClientRequestHost, ClientRequestPath } =
      RECORD;
    const { contents, facts } = parse([
      { EdgeStartTimestamp, ClientRequestMethod, ClientRequestHost, ClientRequestPath },
    ]);
    expect(contents).toMatchObject([{ target: "/v1/items", ip: undefined, status: undefined }]);
    expect([...facts].sort()).toEqual(["host", "method", "time", "url"]);
  });
});
