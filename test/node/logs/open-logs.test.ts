import { execFileSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { accessLine, countedLines, logFolder, readLogs } from "./log-folder.ts";

const logOf = logFolder();
const pad = (number: number) => String(number).padStart(2, "0");
const linesOf = (...times: readonly string[]) =>
  times.map((time, index) => accessLine(`192.0.2.${index % 250}`, time)).join("\n");

describe("reading logs", () => {
  it("hands out requests in the order of their times, and counts all lines", async () => {
    const file = await logOf("a", `${linesOf("10:05:03", "10:04:43", "10:05:00")}\n\nhello\n`);
    const { requests, progress, formats } = await readLogs([file]);
    expect(formats).toEqual(["combined"]);
    expect(requests.map(({ ip }) => ip)).toEqual(["192.0.2.1", "192.0.2.2", "192.0.2.0"]);
    expect(progress).toMatchObject({ lines: 4, requests: 3, broken: 1, notes: [] });
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
    expect(progress).toMatchObject({ requests: 9 });
  });

  it("takes files side by side that are out of order by less than a minute", async () => {
    const times = Array.from({ length: 3000 }, (_, i) => {
      const second = Math.floor(i / 10) + (i % 7 === 0 ? 0 : 55);
      return `10:${String(Math.floor(second / 60)).padStart(2, "0")}:${String(second % 60).padStart(2, "0")}`;
    });
    const files = await Promise.all(
      [0, 1, 2].map((n) => logOf(`part${n}`, linesOf(...times.filter((_, i) => i % 3 === n)))),
    );
    const { requests } = await readLogs(files);
    expect(requests).toHaveLength(3000);
    expect(requests.map(({ at }) => at)).toEqual(
      requests.map(({ at }) => at).sort((a, b) => a - b),
    );
  });

  it("refuses a log that is out of order by more than a minute, with the command that sorts it", async () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => {
      const [hour, minute, second] = [10, Math.floor(i / 600), Math.floor((i % 600) / 10)];
      return accessLine("192.0.2.1", `${hour}:${pad(minute)}:${pad(second)}`, `/${i}`);
    });
    const file = await logOf(
      "unsorted",
      [...lines.slice(10_000), ...lines.slice(0, 10_000)].join("\n"),
    );
    const error = await readLogs([file]).catch((each) => each);
    expect(error).toMatchObject({ exitCode: 2 });
    expect(error.message).toContain(
      "the log is out of order: a request of 2015-05-17T10:00:00.000Z",
    );
    const [, sort = ""] = /Sort it: (.*) \| npx weir replay - \(/.exec(error.message) ?? [];
    const sorted = execFileSync("sh", ["-c", sort], { maxBuffer: 1e8 });
    const { requests } = await readLogs([await logOf("sorted", sorted)]);
    expect(requests.map(({ target }) => target)).toEqual(lines.map((_, i) => `/${i}`));
  });

  it("sorts JSON lines by the starts of requests", async () => {
    const records = Array.from({ length: 3000 }, (_, i) => ({
      ...{ msec: `${1_795_334_400 + i}.000`, request_time: i === 2900 ? "2000.000" : "0.500" },
      ...{ request: "GET / HTTP/1.1", remote_addr: "192.0.2.1" },
    }));
    const text = records.map((each) => JSON.stringify(each)).join("\n");
    const file = await logOf("ends.jsonl", text);
    const error = await readLogs([file], { withDurations: true }).catch((each) => each);
    expect(error.message).toContain(
      `jq -cs 'sort_by((.msec|tonumber) - (.request_time|tonumber))[]' ${file} | npx weir replay -`,
    );
    expect((await readLogs([file])).requests).toHaveLength(3000);
  });

  it("says how to leave out a single line with a wrong time", async () => {
    const future = accessLine("198.51.100.1", "10:00:01").replace("2015", "2099");
    const times = Array.from(
      { length: 1500 },
      (_, i) => `10:${pad(Math.floor(i / 60))}:${pad(i % 60)}`,
    );
    const file = await logOf("wrong", [future, linesOf(...times.toReversed())].join("\n"));
    await expect(readLogs([file])).rejects.toThrow("leave it out with --from or --to.");
    const ordered = await logOf("right", [future, linesOf(...times)].join("\n"));
    const { progress } = await readLogs([ordered], { to: Date.UTC(2016, 0) });
    expect(progress).toMatchObject({ requests: 1500, outside: 1, notes: [] });
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

  it("counts requests outside a period", async () => {
    const file = await logOf("period", linesOf("10:00:00", "10:05:00", "10:06:00", "10:07:00"));
    const at = (minute: number) => Date.UTC(2015, 4, 17, 10, minute);
    const { requests, progress } = await readLogs([file], { from: at(1), to: at(7) });
    expect(requests).toHaveLength(2);
    expect(progress).toMatchObject({ lines: 4, requests: 2, outside: 2 });
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
