import { describe, expect, it } from "vitest";
import { logFolder, readLogs } from "./log-folder.ts";

const logOf = logFolder();

const RECORD = {
  time: "2026-11-22T10:00:00Z",
  client: { address: "192.0.2.1" },
  req: { method: "GET", url: "/a", key: "k" },
  res: { code: 200 },
};
const textOf = (record: object, lines = 3) => `${JSON.stringify(record)}\n`.repeat(lines);
const read = async (name: string, map: Record<string, string>, missingAsAbsent = false) =>
  readLogs([await logOf(name, textOf(RECORD))], {
    map: new Map(Object.entries(map)),
    missingAsAbsent,
  });
const ALL = /have the fields time, client\.address, req\.method, req\.url, req\.key, res\.code\./;

describe("a field that --map names", () => {
  it.each([
    ["ip", "client.adress", "Did you mean client.address?"],
    ["status", "res.cod", "Did you mean res.code?"],
    ["time", "tme", "Did you mean time?"],
    ["url", "req.uri.path", "none of the first records has the field req.uri.path"],
    ["method", "verb", "none of the first records has the field verb"],
    ["host", "hst", "none of the first records has the field hst"],
    ["country", "geo.cc", "If only few requests have it, add --missing-as-absent."],
    ["header:x-api-key", "req.kee", "Did you mean req.key?"],
    ["response-header:x-cost", "res.cost", "--map response-header:x-cost=res.cost: none"],
  ])("for %s is refused if no record has it", async (fact, field, text) => {
    const reading = read(`refused-${fact.replace(":", "-")}`, { [fact]: field });
    await expect(reading).rejects.toThrow(text);
    await expect(reading).rejects.toThrow(ALL);
  });

  it.each([
    ["ip", "req.method"],
    ["status", "client.address"],
    ["time", "req.url"],
  ])("for %s is refused if none of its values can be one", async (fact, field) => {
    await expect(read(`value-${fact}`, { [fact]: field })).rejects.toThrow(
      `--map ${fact}=${field}: none of the first records has the field ${field}, or none has a value that can be its fact.`,
    );
  });

  it("may be rare with --missing-as-absent, if requests can lack its fact", async () => {
    const { requests, progress } = await read("rare", { "header:x-api-key": "req.kee" }, true);
    expect(requests).toHaveLength(3);
    expect(progress.notes).toEqual([expect.stringContaining("header:x-api-key=req.kee: none of")]);
    await expect(read("rare-ip", { ip: "client.adress" }, true)).rejects.toThrow("client.address");
  });

  it("may be empty, and may be missing in some records and files", async () => {
    const empty = await logOf("empty", textOf({ ...RECORD, key: "" }));
    const late = await logOf("late", textOf(RECORD, 500) + textOf({ ...RECORD, key: "k" }, 1));
    const without = await logOf("without", textOf(RECORD));
    const map = new Map([["header:x-api-key", "key"]]);
    for (const files of [[empty], [late], [without, late], [late, without]]) {
      const { progress, facts } = await readLogs(files, { map });
      expect(progress.notes).toEqual([]);
      expect(facts).toContain("header:x-api-key");
    }
    await expect(readLogs([without], { map })).rejects.toThrow("none of the first records");
  });

  it("is named by a short and printable message, whatever the records have", async () => {
    const names = Array.from({ length: 5000 }, (_, index) => [`\u001b[2J${index}`, { a: 1 }]);
    const file = await logOf("hostile", textOf({ ...RECORD, ...Object.fromEntries(names) }, 1));
    const error = await readLogs([file], { map: new Map([["ip", "x"]]) }).catch((error) => error);
    expect(error.message.length).toBeLessThan(5000);
    expect(error.message).not.toContain("\u001b");
    expect(error.message).toMatch(/ and \d+ more\.$/);
  });
});

describe("records that are no requests", () => {
  it("are refused with the names of what they lack", async () => {
    const { time, ...timeless } = RECORD;
    const file = await logOf("timeless", textOf(timeless));
    await expect(readLogs([file])).rejects.toThrow(
      /none of the first records has a time, a method and a URL .* --map time=FIELD .* The first records have the fields client\.address,/,
    );
  });
});

it("takes times without a zone as UTC", async () => {
  const file = await logOf("zoneless", textOf({ ...RECORD, time: "2026-11-22 10:00:00" }));
  const { requests } = await readLogs([file]);
  expect(requests[0]?.at).toBe(Date.parse("2026-11-22T10:00:00Z"));
});
