import { describe, expect, it } from "vitest";
import { AccessLineParser } from "../../../cli/logs/access-line.ts";

const AT = Date.UTC(2015, 4, 17, 10, 5, 3);

const lineOf = (time: string) => `192.0.2.1 - - [${time}] "GET /a/longer/path HTTP/1.1" 200 5`;
const ofTime = (time: string) => new AccessLineParser(undefined).parse(lineOf(time));

describe("the time of a line", () => {
  it.each([
    ["17/May/2015:10:05:03 +0000", AT],
    ["17/May/2015:15:35:03 +0530", AT],
    ["17/May/2015:00:35:03 -0930", AT],
    ["17/May/2015:10:05:03 +00:00", AT],
    ["17/May/2015:10:05:03.250 +0000", AT + 250],
    ["17/May/2015 10:05:03,250999 +0000", AT + 250],
    ["2015-05-17T10:05:03+00:00", AT],
    ["2015-05-17T12:05:03.25+02:00", AT + 250],
    ["29/Feb/2016:23:59:59 +0000", Date.UTC(2016, 2, 1) - 1000],
  ])("may be %s", (time, at) => {
    expect(ofTime(time)).toMatchObject({ at });
  });

  it.each([
    "32/May/2015:10:05:03 +0000",
    "29/Feb/2015:10:05:03 +0000",
    "17/Mai/2015:10:05:03 +0000",
    "17/May/2015:24:05:03 +0000",
    "17/May/2015:10:60:03 +0000",
    "17/May/2015:10:05:61 +0000",
    "17/May/2015:23:59:60 +0000",
    "17/May/0015:10:05:03 +0000",
    "17/May/2015:10:05:03 +9999",
    "17/May/2015:10:05:03 +1500",
    "17/May/2015:10:05:03 +000x",
    "17/May/2015:10:05:03 +9000",
    "17/May/2015:10:05:03 +0060",
    "2015-05-17T10:05:03+90:00",
    "2015-02-30T10:05:03Z",
    "17/May/2015:10:05:03",
    "17/May/2015-10:05:03 +0000",
    "17/May/2015:10.05.03 +0000",
    " ",
  ])("is broken if it is %j", (time) => {
    expect(ofTime(time)).toMatch(/ time /);
  });

  it("is read from the day and zone of each line, not of the line before", () => {
    const parser = new AccessLineParser(undefined);
    const times = [
      ["17/May/2015:10:05:03 +0000", AT],
      ["18/May/2015:10:05:03 +0000", AT + 86_400_000],
      ["17/May/2015:10:05:03 +0100", AT - 3_600_000],
      ["17/May/2015:10:05:03 -0100", AT + 3_600_000],
      ["17/May/2015:10:05:03 +0000", AT],
    ] as const;
    for (const [time, at] of times) {
      expect(parser.parse(lineOf(time))).toMatchObject({ at });
    }
  });
});
