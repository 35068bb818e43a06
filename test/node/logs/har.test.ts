import { describe, expect, it } from "vitest";
import { HarReader } from "../../../cli/logs/har.ts";
import { recogniseFormat } from "../../../cli/logs/log-file.ts";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { LogCounts } from "../../../cli/logs/progress.ts";

const AT = Date.UTC(2026, 10, 22, 8, 0, 1);

const entry = (url: string, headers: readonly unknown[] = [], others: object = {}) => ({
  startedDateTime: "2026-11-22T09:00:01.000+01:00",
  time: 12.5,
  request: { method: "GET", url, headers, bodySize: 0, cookies: [], queryString: [] },
  response: {
    status: 200,
    headers: [{ name: "Content-Type", value: "text/html" }],
    content: { size: 3, text: "x".repeat(1000), entries: [{ request: { url: "/no" } }] },
  },
  ...others,
});
const har = (entries: readonly unknown[]) => ({
  log: { version: "1.2", pages: [{ id: "a", entries: [1] }], entries, entriesOf: [{}] },
});

function read(text: string, chunkBytes = 65_536, host?: string) {
  const counts = new LogCounts();
  const reader = new HarReader("a.har", counts, host);
  const bytes = Buffer.from(text);
  const requests: LogRequest[] = [];
  for (let from = 0; from < bytes.length; from += chunkBytes) {
    requests.push(...reader.push(bytes.subarray(from, from + chunkBytes)));
  }
  requests.push(...reader.end());
  const { lines, broken, brokenLines, notes } = counts;
  expect(lines).toBe(requests.length + broken);
  return { requests, lines, broken, brokenLines, notes, facts: reader.facts() };
}

describe("a HAR file", () => {
  it.each([1, 7, 65_536])("states all header fields, read in chunks of %d bytes", (size) => {
    const headers = [
      { name: ":method", value: "GET" },
      { name: "User-Agent", value: "curl/8" },
      { name: "Accept", value: "a" },
      { name: "accept", value: "b" },
      { name: "Cookie", value: "c=1" },
      { name: "cookie", value: "d=2" },
      { name: "CF-Connecting-IP", value: "2001:DB8::1" },
      { name: 5 },
      null,
    ];
    const text = JSON.stringify(har([entry("https://Example.com:8443/a?b=ü#c", headers)]), null, 1);
    const { requests, facts, notes } = read(`\ufeff${text}\n`, size);
    expect(requests).toEqual([
      {
        at: AT,
        method: "GET",
        target: "/a?b=ü",
        host: "example.com",
        ip: "2001:db8::1",
        status: 200,
        userAgent: "curl/8",
        headers: new Map([
          ["user-agent", "curl/8"],
          ["accept", "a, b"],
          ["cookie", "c=1; d=2"],
          ["cf-connecting-ip", "2001:DB8::1"],
        ]),
        responseHeaders: new Map([["content-type", "text/html"]]),
        cf: undefined,
        bodyBytes: 0,
        durationMs: 12.5,
      },
    ]);
    expect(facts).toEqual({
      ...{
        isMappable: false,
        ip: true,
        host: true,
        status: true,
        country: false,
        asn: false,
        bots: false,
      },
      ...{ ja4: false, bodyBytes: true, headers: "all", responseHeaders: "all" },
    });
    expect(notes).toEqual([]);
  });

  it("states no address without one, and no length of bodies if one is not known", () => {
    const other = entry("https://example.com/");
    const { requests, facts, notes } = read(
      JSON.stringify(
        har([
          entry("https://example.com/", [], { _clientIPAddress: "192.0.2.1" }),
          { ...other, request: { ...other.request, bodySize: -1 }, response: { status: 0 } },
        ]),
      ),
    );
    expect(requests).toMatchObject([
      { ip: "192.0.2.1", bodyBytes: 0 },
      { ip: undefined, bodyBytes: undefined, status: undefined },
    ]);
    expect(facts).toMatchObject({ ip: false, bodyBytes: false });
    expect(notes).toEqual([
      expect.stringContaining("No request of a.har has the header fields cookie"),
    ]);
  });

  it.each([
    [{}, "has no request with method and url"],
    ["text", "has no request"],
    [null, "has no request"],
    [[], "has no request"],
    [{ request: { method: "GET" } }, "has no request"],
    [entry("data:text/plain,a"), "has a URL that begins with neither http nor https"],
    [entry("https://example.com/", [], { startedDateTime: "now" }), "has no time"],
    [
      entry("https://example.com/", [{ name: "a", value: "b".repeat(2 ** 20) }]),
      "has header fields with more than 1 MiB",
    ],
  ])("counts a broken entry, and reads the others: %.60j", (broken, reason) => {
    const { requests, brokenLines, lines } = read(
      JSON.stringify(har([entry("https://example.com/1"), broken, entry("https://example.com/2")])),
    );
    expect(requests.map(({ target }) => target)).toEqual(["/1", "/2"]);
    expect(brokenLines).toMatchObject([{ file: "a.har", line: 2 }]);
    expect(brokenLines[0]?.reason).toContain(reason);
    expect(lines).toBe(3);
  });

  it("gives the entries before the place where it breaks off, and a note", () => {
    const text = JSON.stringify(
      har([entry("https://example.com/1"), entry("https://example.com/2")]),
    );
    for (let length = text.indexOf('"entries":[{"st'); length < text.length; length += 97) {
      const { requests, lines, notes } = read(text.slice(0, length));
      expect(requests.length).toBeLessThanOrEqual(lines);
      expect(notes.at(-1) ?? notes[0]).toMatch(
        /read only up to entry [012]: it ends too early|No request/,
      );
      expect(notes.some((note) => note.includes(`up to entry ${lines}`))).toBe(true);
    }
  });

  it.each([
    ['{"log":{"entries":[}', "read only up to entry 0"],
    ["", "ends too early"],
    ["{}", undefined],
    ['{"log":{"entries":{}}}', undefined],
    ['{"log":{"entries":[]}} x', "read only up to entry 0"],
    [`{"log":{"entries":[${"[".repeat(200)}`, "nested too deeply"],
    [`{"log":${"[".repeat(1_000_000)}`, "nested too deeply"],
  ])("without entries: %.60j", (text, note) => {
    const { requests, notes } = read(text);
    expect(requests).toEqual([]);
    if (note === undefined) expect(notes).toEqual([]);
    else expect(notes.join()).toContain(note);
  });

  it("is not held in memory while a single text does not end", () => {
    const counts = new LogCounts();
    const reader = new HarReader("a.har", counts, undefined);
    reader.push(Buffer.from('{"log":{"entries":[{"a":"'));
    const chunk = Buffer.alloc(2 ** 20, "x");
    for (let read = 0; read < 66; read++) reader.push(chunk);
    expect(counts.notes).toEqual([expect.stringContaining("a text is longer than 64 MiB")]);
    expect(counts.broken).toBe(1);
  });

  it.each([
    ['{"log":{"version":"1.2","entries":[]}}', "har"],
    ['{"log":{"version":"1.2","ent', "har"],
    ['{\n  "log": {\n    "version": "1.2",', "har"],
    ['{"log":{"level":"info"},"method":"GET"}', "json"],
    ['{"log":"text"}', "json"],
  ])("is recognised by its start: %j", (text, format) => {
    expect(recogniseFormat(text.split("\n"))).toBe(format);
  });
});
