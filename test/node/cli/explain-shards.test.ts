import { expect, it } from "vitest";
import { explainWith } from "./explain-command.ts";

const URL = "https://api.example.com/";
const RULE = { name: "api", limit: 6, window: "1m", shards: 3 };

it("names the shards as the reason if they are too small for the cost", async () => {
  const rules = [{ ...RULE, cost: 3 }];
  const { text } = await explainWith({ rules }, [URL]);
  expect(text.replace(/\s+/g, " ")).toContain(
    "The rule api has 6 of 6 (api) left, but not enough in the shard that the request draws.",
  );
  expect(text).toMatch(/never fits +at most 2 pass at once\n/);
  expect(text).not.toMatch(/retry-after|Try again/);
});
