import { expect, it } from "vitest";
import { explainWith } from "./explain-command.ts";

it("shows a long source of the cost in full only with --verbose", async () => {
  const name = `x-cost-${"a".repeat(60)}-end`;
  const cost = { reserve: 2, settle: `header:${name}` };
  const rules = [{ name: "api", limit: 6, window: "1m", cost }];
  const url = "https://api.example.com/";
  expect((await explainWith({ rules }, [url])).text).not.toContain(name);
  expect((await explainWith({ rules }, [url, "--verbose"])).text).toContain(
    `(reserve: 2; settled by header:${name} of the response)`,
  );
});
