import { readFileSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { commandRows } from "../../../bench/commands/commands.ts";
import { startTestRedis } from "../../../dev/test-redis.ts";

const redis = await startTestRedis();
afterAll(() => redis.stop());

it("docs/cost.md shows the commands of decisions as the script has counted them", async () => {
  const page = readFileSync("docs/cost.md", "utf8");
  const [, table = ""] = /^(\| commands of a decision[\s\S]*?)\n\n/m.exec(page) ?? [];
  const shown = table
    .split("\n")
    .slice(2)
    .map((line) => line.split("|").slice(1, -1));
  const rows = shown.map((cells) => cells.map((cell) => cell.trim()));
  const counted = await commandRows(redis);
  expect(rows.length).toBeGreaterThan(10);
  expect(counted).toEqual(expect.arrayContaining(rows));
});
