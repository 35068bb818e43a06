import { expect, it } from "vitest";
import { readPage } from "../docs/pages.ts";
import { COMPARISON } from "../html/comparison.ts";
import { replayOf } from "../html/fixtures.ts";

const page = readPage("docs/replay.md");

it("docs/replay.md has a row for each field of the JSON", () => {
  const start = page.prose.indexOf("## JSON");
  const rows = page.prose.slice(start).filter((line) => line.startsWith("| `"));
  const named = rows.flatMap((row) => row.split(" | ")[0]?.match(/\w+/g) ?? []);
  const report = { ...replayOf(1), isPartial: true, comparison: COMPARISON };
  const fields = Object.keys(report).filter((field) => field !== "version");
  expect(named.toSorted()).toEqual(fields.toSorted());
});
