import { describe, expect, it } from "vitest";
import { parseAccessLog, readAccessLog } from "../../../../bench/simulation/access-log.ts";
import { Random } from "../../../../bench/simulation/random.ts";
import { syntheticLog } from "../../../../bench/simulation/synthetic-log.ts";

const parse = (lines: Iterable<string>) => parseAccessLog(lines, new Random(1, "log"));
const line = (address: string, time: string) => `${address} - - [${time}] "GET / HTTP/1.1" 200 5`;

describe("an access log", () => {
  it("is sorted by time", () => {
    const { arrivals, clients, durationMs, unreadable } = parse([
      line("192.0.2.1", "17/May/2015:10:05:03 +0000"),
      line("192.0.2.2", "17/May/2015:10:04:43 +0000"),
      line("192.0.2.1", "17/May/2015:10:05:00 +0000"),
    ]);
    expect(arrivals.map(({ client }) => client)).toEqual([1, 0, 0]);
    const seconds = arrivals.map(({ atMs }) => Math.floor(atMs / 1000));
    expect(seconds).toEqual([0, 17, 20]);
    expect({ clients, durationMs, unreadable }).toEqual({
      clients: 2,
      durationMs: 21_000,
      unreadable: 0,
    });
  });

  it("may have users, time zones, IPv6 addresses and the fields of the combined format", () => {
    const { arrivals, unreadable } = parse([
      '2001:db8::1 - ann [31/Dec/2015:23:59:59 -0100] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0"',
      '192.0.2.1 - "Ann Lee" [01/Jan/2016:01:00:00 +0000] "GET / HTTP/1.1" 200 - "-" "-"',
      '192.0.2.1 - - [01/Jan/2016:01:00:30 +0000] "-" 408 - "-" "-"',
    ]);
    expect(unreadable).toBe(0);
    expect(arrivals.map(({ atMs }) => Math.floor(atMs / 1000))).toEqual([0, 1]);
  });

  it("may have empty lines and lines in another format", () => {
    const { arrivals, unreadable } = parse([
      "# comment",
      "",
      line("192.0.2.1", "32/May/2015:10:05:00 +0000"),
      line("192.0.2.1", "17/May/2015:10:05:00 +0000"),
    ]);
    expect(arrivals).toHaveLength(1);
    expect(unreadable).toBe(2);
  });

  it("is rejected when no line has the format or the file cannot be read", async () => {
    expect(() => parse(["hello", "world"])).toThrow("No line has a request with an address.");
    const random = new Random(1, "log");
    await expect(readAccessLog("no/such.log", random)).rejects.toThrow(
      /^no\/such\.log cannot be read: there is no/,
    );
    await expect(readAccessLog(".", random)).rejects.toThrow(/^\. is a directory/);
  });

  it("is generated from a seed when the user has none", () => {
    const make = (seed: number) => [...syntheticLog(new Random(seed, "log"))];
    expect(make(1)).toEqual(make(1));
    expect(make(1)).not.toEqual(make(2));
    const { arrivals, unreadable } = parse(make(1));
    expect(unreadable).toBe(0);
    expect(arrivals.length).toBeGreaterThan(10_000);
  });
});
