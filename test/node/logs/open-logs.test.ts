import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { accessLine, countedLines, logFolder, readLogs } from "./log-folder.ts";

const logOf = logFolder();
const linesOf = (...times: readonly string[]) =>
  times.map((time, index) => accessLine(`192.0.2.${index % 250}`, time)).join("\n");

describe("reading logs", () => {
  it("hands out requests in the order of their times, and counts all lines", async () => {
    const file = await logOf("a", `${linesOf("10:05:03", "10:04:43", "10:05:00")}\n\nhello\n`);
    const { requests, progress, formats } = await readLogs([file]);
    expect(formats).toEqual(["combined"]);
    expect(requests.map(({ ip }) => ip)).toEqual(["192.0.2.1", "192.0.2.2", "192.0.2.0"]);
    expect(progress).toMatchObject({ lines: 4, requests: 3, broken: 1, late: 0, notes: [] });
    expect(progress.bytesRead).toBe(progress.bytesTotal);
  });

  it("reads files side by side, whatever their order and compression", async () => {
    const files = [
      await logOf("3", linesOf("10:20:00", "10:21:00", "10:22:00")),
      await logOf("1.gz", gzipSync(linesOf("10:00:00", "10:01:00", "10:30:00"))),
      await logOf("2", linesOf("10:10:00", "10:09:30", "10:20:30")),
    ];
    const { requests, progress } = await readLogs(files);
    expect(requests.map(({ at }) => new Date(at).toISOString().slice(14, 19))).toEqual([
      ...["00:00", "01:00", "09:30", "10:00", "20:00", "20:30", "21:00", "22:00", "30:00"],
    ]);
    expect(progress).toMatchObject({ requests: 9, late: 0 });
    expect(progress.bytesRead).toBe(progress.bytesTotal);
  });

  it("has no more late lines in several files than in each of them", async () => {
    const times = Array.from({ length: 3000 }, (_, i) => {
      const second = Math.floor(i / 10) + (i % 7 === 0 ? 0 : 20);
      return `10:${String(Math.floor(second / 60)).padStart(2, "0")}:${String(second % 60).padStart(2, "0")}`;
    });
    const files = await Promise.all(
      [0, 1, 2].map((n) => logOf(`part${n}`, linesOf(...times.filter((_, i) => i % 3 === n)))),
    );
    const { requests, progress } = await readLogs(files, { maxDelay: 21_000 });
    expect(progress).toMatchObject({ requests: 3000, late: 0 });
    expect(requests.map(({ at }) => at)).toEqual(
      requests.map(({ at }) => at).sort((a, b) => a - b),
    );
  });

  it("takes lines as late after one with a wrong time, and says how to leave that line out", async () => {
    const future = accessLine("198.51.100.1", "10:00:01").replace("2015", "2099");
    const file = await logOf("wrong", [future, linesOf("10:00:00", "10:00:01")].join("\n"));
    const { progress } = await readLogs([file], { maxDelay: 1000 });
    expect(progress).toMatchObject({ requests: 1, late: 2 });
    expect(progress.notes).toEqual([expect.stringContaining("leave it out with --to.")]);
    const { progress: without } = await readLogs([file], { to: Date.UTC(2016, 0) });
    expect(without).toMatchObject({ requests: 2, late: 0, outside: 1, notes: [] });
  });

  it("reads many files", async () => {
    const files = await Promise.all(
      Array.from({ length: 250 }, (_, i) =>
        logOf(
          `many${i}`,
          linesOf(
            `10:${String(i % 60).padStart(2, "0")}:${String(Math.floor(i / 60)).padStart(2, "0")}`,
          ),
        ),
      ),
    );
    expect((await readLogs(files)).requests).toHaveLength(250);
  });

  it("counts requests outside a period, and those that are too late", async () => {
    const file = await logOf(
      "period",
      linesOf("10:00:00", "10:05:00", "10:03:59", "10:06:00", "10:07:00"),
    );
    const at = (minute: number) => Date.UTC(2015, 4, 17, 10, minute);
    const { requests, progress } = await readLogs([file], { from: at(1), to: at(7) });
    expect(requests).toHaveLength(2);
    expect(progress).toMatchObject({ lines: 5, requests: 2, outside: 2, late: 1 });
    expect(countedLines(progress)).toBe(progress.lines);
  });

  it("states what all files state", async () => {
    const combined = await logOf("combined", `${accessLine("192.0.2.1", "10:00:00")} "-" "curl/8"`);
    const common = await logOf("common", accessLine("192.0.2.1", "10:00:00"));
    const empty = await logOf("empty", "\n\n");
    const record = { time: 1, method: "GET", url: "/", user_agent: "a", header: 1 };
    const json = await logOf("json", JSON.stringify(record));
    const facts = async (...files: string[]) => [...(await readLogs(files)).facts].sort();
    const ofCombined = ["header:referer", "header:user-agent", "ip", "status"];
    expect(await facts(combined)).toEqual(ofCombined);
    expect(await facts(combined, common)).toEqual(["ip", "status"]);
    expect(await facts(combined, empty)).toEqual(ofCombined);
    expect(await facts(combined, json)).toEqual(["header:user-agent"]);
    const all = await readLogs([combined, json], { host: "Example.com:443" });
    expect(all.formats).toEqual(["combined", "json"]);
    expect([...all.facts].sort()).toEqual(["header:user-agent", "host"]);
    expect(all.requests.map(({ host }) => host)).toEqual(new Array(2).fill("example.com"));
  });

  it("takes the format that the user names", async () => {
    const file = await logOf(
      "named",
      `${linesOf("10:00:00")}\n{"time":1,"method":"GET","url":"/"}`,
    );
    expect((await readLogs([file])).requests).toMatchObject([{ status: 200 }]);
    const { requests, progress } = await readLogs([file], { format: "json" });
    expect(requests).toMatchObject([{ at: 1000 }]);
    expect(progress).toMatchObject({ requests: 1, broken: 1 });
  });

  it("reads fields that the user names", async () => {
    const file = await logOf(
      "mapped",
      '{"t":1,"m":"GET","u":"/a","client":{"address":"192.0.2.1"}}',
    );
    const map = new Map([
      ["time", "t"],
      ["method", "m"],
      ["url", "u"],
      ["ip", "client.address"],
    ]);
    expect((await readLogs([file], { map })).requests).toMatchObject([{ ip: "192.0.2.1" }]);
    await expect(readLogs([file])).rejects.toThrow(
      /--map time=FIELD .* The first records have the fields t, m, u, client\.address\.$/,
    );
    await expect(readLogs([file], { map: new Map([["x", "t"]]) })).rejects.toThrow(/no fact "x"/);
  });

  it("keeps the first ten broken lines, without their text, which may have secrets", async () => {
    const broken = Array.from(
      { length: 12 },
      (_, i) => `${i} \x1b[31m GET /a?token=secret "${"x".repeat(300)}`,
    );
    const file = await logOf("broken", [linesOf("10:00:00"), ...broken].join("\n"));
    const { progress } = await readLogs([file]);
    expect(progress.broken).toBe(12);
    expect(progress.brokenLines).toHaveLength(10);
    expect(progress.brokenLines[0]).toMatchObject({ file, line: 2 });
    for (const each of progress.brokenLines) {
      expect(each.reason).toContain("does not begin with an IP address");
      expect(JSON.stringify(each)).not.toContain("secret");
    }
  });
});
