import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { AccessLineParser } from "../../../cli/logs/access-line.ts";
import { RecordParser } from "../../../cli/logs/json-records.ts";
import { type LineParser, type LogRequest, ownText } from "../../../cli/logs/log-request.ts";
import { accessLine } from "./log-folder.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

function usedBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const CHUNK = 65_536;
const COUNT = 1000;

/** A chunk of a log: many bytes, of which the test reads only the first line. */
const chunkOf = (line: string) => Buffer.from(`${line}\n`.padEnd(CHUNK, "x")).toString("latin1");
const firstLine = (chunk: string) => chunk.slice(0, chunk.indexOf("\n"));

const combined = (i: number) =>
  `${accessLine(`198.51.100.${100 + (i % 150)}`, "10:00:00", `/a/long/path/${i}?query`)} "https://example.com/referer/${i}" "a long user agent ${i}"`;
const record = (i: number) =>
  JSON.stringify({
    time: i,
    method: "GET",
    url: `/a/long/path/${i}`,
    ua: `a long user agent ${i}`,
  });

/** The texts of a request. The request itself may keep the text of many lines, to parse its last fields later. */
function textsOf({ method, target, host, ip, headers }: LogRequest) {
  return { method, target, host, ip, headers, userAgent: headers?.get("user-agent") };
}

describe("the memory of the texts of a request", () => {
  it.each<[string, LineParser, (i: number) => string]>([
    ["access logs", new AccessLineParser(undefined), combined],
    [
      "JSON lines",
      new RecordParser(
        new Map([
          ["time", ["time"]],
          ["method", ["method"]],
          ["url", ["url"]],
          ["header:user-agent", ["ua"]],
        ]),
        undefined,
      ),
      record,
    ],
  ])("of %s does not include the chunk that its line was read in", (_, parser, lineOf) => {
    const kept: unknown[] = [];
    const before = usedBytes();
    for (let i = 0; i < COUNT; i++) {
      const request = parser.parse(firstLine(chunkOf(lineOf(i)))) as LogRequest;
      kept.push(textsOf(request));
    }
    const bytes = (usedBytes() - before) / COUNT;
    expect(kept.at(-1)).toMatchObject({
      method: "GET",
      userAgent: `a long user agent ${COUNT - 1}`,
    });
    expect(bytes).toBeLessThan(4000);
  });
});

it("copies texts of any length", () => {
  for (const text of ["", "a", "exactly 12 ch", "a longer text than that", "ü€😀\ud800"]) {
    expect(ownText(text)).toBe(text);
  }
});
