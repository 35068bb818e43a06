import { readFileSync } from "node:fs";
import { URL } from "node:url";
import { describe, expect, it } from "vitest";
import { cpuTimeMs } from "../../../fuzz/property.ts";
import { EventStreamParser } from "../../../src/llm/body-text.ts";
import { llmReserve } from "../../../src/llm/llm-reserve.ts";
import { addEvent } from "../../../src/llm/llm-usage.ts";
import { UsageTally } from "../../../src/llm/token-counts.ts";

/** The length of a stream, and the maximum CPU time for reading it, in milliseconds. */
const LENGTH = 1024 * 1024;
const LIMIT_MS = 250;
/** A run that takes at most this time is not repeated. */
const SHORT_MS = 80;
/** Only the shortest run counts, because garbage collection delays some runs. */
const RUNS = 4;

const CASES: Record<string, (length: number) => string> = {
  "one line": (length) => `data: ${"x".repeat(length)}\n\n`,
  "empty lines": (length) => "\n".repeat(length),
  "empty lines of data": (length) => "data\n".repeat(length / 5),
  "carriage returns": (length) => "\r".repeat(length),
  "alternating line ends": (length) => "a\rb\n".repeat(length / 4),
  "line feeds, with a carriage return only at the end": (length) =>
    `${"data: x\n\n".repeat(length / 9)}\r`,
  "small events": (length) => "data:1\n\n".repeat(length / 8),
  "events with usage": (length) => 'data:{"usage":{"total_tokens":1}}\n\n'.repeat(length / 35),
  "content after usage": (length) =>
    `data:{"usage":{"total_tokens":1}}\n\n${'data:{"content" : "x"}\n\n'.repeat(length / 23)}`,
  "one event of content without a value": (length) =>
    `data:{"usage":{"total_tokens":1}}\n\ndata: ${'"reasoning"  :'.repeat(length / 14)}\n\n`,
  "usage without a value": (length) => `data: ${'"usage"      :'.repeat(length / 14)}\n\n`,
};

/** Reads a text as one stream that arrives in pieces. */
function read(pieces: readonly string[]): void {
  const tally = new UsageTally();
  const parser = new EventStreamParser((data) => addEvent(tally, data));
  for (const piece of pieces) parser.push(piece);
  parser.end();
}

// A million characters, lines or pieces in quadratic time would take minutes.
describe("reading a stream of 1 MiB takes less than 250 ms", () => {
  it.each(Object.entries(CASES))("%s", async (_, make) => {
    const text = make(LENGTH);
    for (const pieceLength of [65_536, 100, 1]) {
      const pieces: string[] = [];
      for (let start = 0; start < text.length; start += pieceLength) {
        pieces.push(text.slice(start, start + pieceLength));
      }
      expect(await cpuTimeOfCall(() => read(pieces))).toBeLessThan(LIMIT_MS);
    }
  });
});

/** Returns the CPU time of a call, by the shortest of several runs. */
async function cpuTimeOfCall(call: () => unknown): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS && shortest > SHORT_MS; run++) {
    const startedAt = cpuTimeMs();
    await call();
    shortest = Math.min(shortest, cpuTimeMs() - startedAt);
  }
  return shortest;
}

describe("estimating a request of 1 MiB takes less than 250 ms", () => {
  it.each<[name: string, body: string]>([
    ["one text", `{"a":"${"x".repeat(LENGTH - 8)}"}`],
    ["escaped quotes", `{"a":"${'\\"'.repeat(LENGTH / 2 - 4)}"}`],
    ["one name", `{"${"n".repeat(LENGTH - 7)}":1}`],
    ["a name of foreign letters", `{"${"İſ".repeat(LENGTH / 4 - 4)}":1}`],
    ["many colons after one name", `{"${"n".repeat(LENGTH - 60_007)}"${":".repeat(60_000)}1}`],
    ["the same name", `{${'"n":1,'.repeat(LENGTH / 6 - 1)}"n":1}`],
    ["many prompts", `{"prompt":[${'"",'.repeat(LENGTH / 3 - 5)}""]}`],
    ["one list of numbers", `{"prompt":[${"1,".repeat(LENGTH / 2 - 7)}1]}`],
    ["many lists of numbers", `{"prompt":[${"[1],".repeat(LENGTH / 4 - 4)}[1]]}`],
    ["lists of numbers that do not end", "[1,".repeat(LENGTH / 3)],
    ["one long number", `{"prompt":[${"1".repeat(LENGTH - 14)}]}`],
    ["white space in a list", `{"prompt":[1${" ".repeat(LENGTH - 14)}]}`],
    ["nested lists", "[".repeat(LENGTH)],
    ["nested objects", '{"a":'.repeat(LENGTH / 5)],
  ])("%s", async (_, body) => {
    const length = Buffer.byteLength(body);
    const headers = { "content-length": String(length) };
    const estimate = () =>
      llmReserve()(new Request("https://a.example", { method: "POST", headers, body }));
    expect(length).toBeLessThanOrEqual(LENGTH);
    expect(await cpuTimeOfCall(estimate)).toBeLessThan(LIMIT_MS);
  });
});

describe("the tokens of GraphQL in docs/functions.md: 1 MiB takes less than 500 ms", () => {
  const page = new URL("../../../docs/functions.md", import.meta.url);
  const [, source = ""] = /const TOKEN = \/(.*)\/g;/.exec(readFileSync(page, "utf8")) ?? [];

  it.each(['"', '"""', '"""\\"""', '"\\', '"""\\', '"a', '"\n', "\\", "#", "{"])(
    "%j",
    async (part) => {
      const query = part.repeat(LENGTH / part.length);
      const read = () => query.replaceAll(new RegExp(source, "g"), "").length;
      expect(source).not.toBe("");
      expect(await cpuTimeOfCall(read)).toBeLessThan(2 * LIMIT_MS);
      expect(await cpuTimeOfCall(() => `"""${query}`.match(new RegExp(source, "g")))).toBeLessThan(
        2 * LIMIT_MS,
      );
    },
  );
});
