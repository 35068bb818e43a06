import { expect, it } from "vitest";
import { EventStreamParser, MAX_EVENT_LENGTH } from "../../../src/llm/body-text.ts";

function parse(...pieces: string[]): string[] {
  const events: string[] = [];
  const parser = new EventStreamParser((data) => events.push(data));
  for (const piece of pieces) parser.push(piece);
  parser.end();
  return events;
}

it.each<[name: string, text: string, events: string[]]>([
  ["an event", "data: a\n\n", ["a"]],
  ["no space after the colon", "data:a\n\n", ["a"]],
  ["two spaces after the colon", "data:  a\n\n", [" a"]],
  ["an event over several lines", "data: a\ndata: b\n\ndata: c\n\n", ["a\nb", "c"]],
  ["fields between the lines of an event", "data: a\nid: 1\n: x\ndata: b\n\n", ["a\nb"]],
  ["empty lines of data", "data\ndata:\ndata: \n\n", ["\n\n"]],
  ["one empty line of data", "data\n\n", [""]],
  ["other fields", "event: x\nid: 1\nretry: 5\ndata: a\nevent: y\n\n", ["a"]],
  ["fields with similar names", "datas: a\ndat: b\n data: c\nDATA: d\n\n", []],
  ["comments", ": data: a\n:\n\ndata: b\n: c\n\n", ["b"]],
  ["several blank lines", "\n\n\ndata: a\n\n\n\ndata: b\n\n", ["a", "b"]],
  ["an event without data", "event: x\n\ndata: a\n\n", ["a"]],
  ["CR LF", "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", ["a\nb", "c"]],
  ["CR", "data: a\rdata: b\r\rdata: c\r\r", ["a\nb", "c"]],
  ["LF CR", "data: a\n\rdata: b\n\r", ["a", "b"]],
  ["mixed line ends", "data: a\r\n\ndata: b\r\r\ndata: c\n\r\n", ["a", "b", "c"]],
  ["no blank line at the end", "data: a\n\ndata: b\n", ["a", "b"]],
  ["no line end at the end", "data: a\n\ndata: b", ["a", "b"]],
  ["nothing", "", []],
])("reads %s, in one piece and in many", (_, text, events) => {
  expect(parse(text)).toEqual(events);
  expect(parse(...text)).toEqual(events);
  for (let cut = 0; cut <= text.length; cut++) {
    expect(parse(text.slice(0, cut), "", text.slice(cut))).toEqual(events);
  }
});

it.each<[name: string, before: string, after: string]>([
  ["a line", "data: ", "\n\n"],
  ["a comment", ":", "\n\n"],
])("skips %s above the maximum, and reads the next one", (_, before, after) => {
  const piece = "x".repeat(1000);
  const pieces = Array.from({ length: Math.ceil(MAX_EVENT_LENGTH / 1000) }, () => piece);
  expect(parse(before, ...pieces, after, "data: next\n\n")).toEqual(["next"]);
  expect(parse(before + pieces.join("") + after, "data: next\n\n")).toEqual(["next"]);
});

it("reads an event of the maximum length", () => {
  const value = "x".repeat(MAX_EVENT_LENGTH - "data: ".length);
  expect(parse(`data: ${value}\n\n`)).toEqual([value]);
});
