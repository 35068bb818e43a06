import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { checkedLogOptions, withLogOptions } from "../../../cli/logs/open-logs.ts";

/** Parses the arguments of a command with the options about logs. */
function parse(...args: string[]) {
  const command = withLogOptions(new Command("test"))
    .exitOverride()
    .configureOutput({ writeErr() {} });
  command.parse(args, { from: "user" });
  return checkedLogOptions(command.args, command.opts());
}

describe("the options about logs", () => {
  it("have no defaults", () => {
    expect(parse("a.log", "b.log.gz")).toEqual({ files: ["a.log", "b.log.gz"] });
  });

  it("are read in the units of openLogs", () => {
    const times = ["--from", "2026-11-22T09:00+01:00", "--to", "2026-11-23"];
    const mapped = ["--map", "ip=client.address, status=code", "--map", "header:x-a=h.x=a"];
    const others = ["--format", "json", "--host", "example.com"];
    expect(parse("-", ...times, ...mapped, ...others)).toEqual({
      files: ["-"],
      format: "json",
      map: new Map([
        ["ip", "client.address"],
        ["status", "code"],
        ["header:x-a", "h.x=a"],
      ]),
      host: "example.com",
      from: Date.UTC(2026, 10, 22, 8),
      to: Date.UTC(2026, 10, 23),
    });
  });

  it.each([
    [[], "missing required argument 'log'"],
    [["a", "--format", "csv"], "combined, json"],
    [["a", "--map", "ip"], "Allowed: FACT=FIELD, such as ip=client.address."],
    [["a", "--map", "=x"], "Allowed: FACT=FIELD"],
    [["a", "--map", "ip=,status=x"], "Allowed: FACT=FIELD"],
    [["a", "--map", "ip=a", "--map", "ip=b"], "ip has two fields. Name one."],
    [["a", "--max-delay", "2m"], "unknown option '--max-delay'. Lines may be out of order by"],
    [["a", "--html", "a.html"], "unknown option '--html'. Use the text, or --json."],
    [["a", "--html"], "unknown option '--html'"],
    [["a", "--markdown"], "unknown option '--markdown'."],
    [["a", "--from", "yesterday"], "a time with its zone, such as 2026-11-22T08:00Z"],
    [["a", "--from", "2026-11-22T08:00"], "a time with its zone"],
    [["a", "--from", "2026-02-30"], "a time with its zone"],
    [["a", "--to", "2026-11-22T25:00Z"], "a time with its zone"],
    [["a", "--from", "2026-11-22", "--to", "2026-11-22"], "--to must be a later time than --from."],
    [["x.log", "./x.log"], "./x.log is named twice"],
    [["a", "--host", "b a d"], "--host b a d: this is not a host name."],
    [["-", "-"], "- is named twice"],
  ])("refuse %j", (args, message) => {
    expect(() => parse(...args)).toThrow(message);
  });
});
