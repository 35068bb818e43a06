import { expect, it } from "vitest";
import { OBJECT_FAULTS } from "../../chaos/object-faults.ts";
import { REDIS_FAULTS } from "../../chaos/redis-faults.ts";
import { REST_FAULTS } from "../../chaos/rest-faults.ts";
import type { Fault } from "../../chaos/support/fault.ts";
import { readPage } from "./pages.ts";

const FAULTS: readonly Fault<never>[] = [...REST_FAULTS, ...REDIS_FAULTS, ...OBJECT_FAULTS];

const page = readPage("docs/failure.md");
/** The page as one line, because a sentence may have several lines. */
const text = page.prose.join(" ").replace(/\s+/g, " ");

// test/chaos causes each fault, and checks its cause and the answers to requests.
it("docs/failure.md has examples of the faults that the tests cause, for each cause", () => {
  const section = page.lines.slice(page.lines.indexOf("## Faults"));
  const rows = section.flatMap((line) => {
    const [, cause = "", examples = ""] = /^\| `([\w-]+)` \| (.+) \|$/.exec(line) ?? [];
    return cause === "" ? [] : [{ cause, examples: examples.split(", ") }];
  });
  const causes = new Set(FAULTS.flatMap(({ cause }) => cause ?? []));
  expect(rows.map(({ cause }) => cause).toSorted()).toEqual([...causes].toSorted());
  for (const { cause, examples } of rows) {
    const ofCause = FAULTS.filter((fault) => fault.cause === cause).map(({ does }) => does);
    expect(examples.filter((example) => !ofCause.includes(example))).toEqual([]);
  }
});

it("docs/failure.md names the faults that leave all requests decided", () => {
  const decided = FAULTS.filter(({ cause }) => cause === undefined);
  expect(decided.length).toBeGreaterThan(0);
  for (const { does } of decided) expect(text).toContain(`**${does}**`);
});
