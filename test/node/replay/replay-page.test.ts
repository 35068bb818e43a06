import { Command } from "commander";
import { expect, it } from "vitest";
import { addReplayCommand } from "../../../cli/replay.ts";
import { inlineCodeOf, readPage } from "../docs/pages.ts";
import { COMPARISON } from "../html/comparison.ts";
import { replayOf } from "../html/fixtures.ts";

const page = readPage("docs/replay.md");
const program = new Command();
addReplayCommand(program);
const [command] = program.commands;
const options = (command?.options ?? []).map(({ long }) => `${long}`);

it("docs/replay.md has a row for each option of weir replay, and for no other", () => {
  const rows = page.prose.filter((line) => line.startsWith("| `--"));
  const named = rows.flatMap((row) => row.split(" | ")[0]?.match(/--[a-z-]+/g) ?? []);
  expect(options.length).toBeGreaterThan(10);
  expect(named.toSorted()).toEqual(options.toSorted());
});

it.each(["docs/replay.md", "docs/guides/try-rules.md"])(
  "%s names only options that exist",
  (path) => {
    const { blocks } = readPage(path);
    const lines = [
      ...blocks.flatMap(({ code }) => code.split("\n")),
      ...inlineCodeOf(readPage(path)),
    ];
    const used = lines
      .flatMap((line) => /\bweir replay (.*)/.exec(line)?.[1] ?? [])
      .flatMap((rest) => rest.match(/--[a-z-]+/g) ?? []);
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((option) => !options.includes(option))).toEqual([]);
  },
);

it("docs/replay.md has a row for each field of the JSON", () => {
  const start = page.prose.indexOf("## JSON");
  const rows = page.prose.slice(start).filter((line) => line.startsWith("| `"));
  const named = rows.flatMap((row) => row.split(" | ")[0]?.match(/\w+/g) ?? []);
  const report = { ...replayOf(1), isPartial: true, comparison: COMPARISON };
  const fields = Object.keys(report).filter((field) => field !== "version");
  expect(named.toSorted()).toEqual(fields.toSorted());
});
