import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readPage } from "./pages.ts";

// No machine without an account can run these queries, so they are compared with the words of Cloudflare's reference:
// https://developers.cloudflare.com/analytics/analytics-engine/sql-reference/

const page = readPage("docs/guides/usage.md");
const queries = page.blocks.filter(({ language }) => language === "sql").map(({ code }) => code);
const CLAUSES = "SELECT FROM WHERE GROUP BY ORDER LIMIT AS AND DESC INTERVAL DAY".split(" ");
const FUNCTIONS = ["SUM", "sumIf", "NOW", "toStartOfDay", "toStartOfWeek", "toStartOfMonth"];
const OWN_COLUMNS = ["timestamp", "_sample_interval"];

/** The columns of the page's table, each with its description. */
const columns = new Map(
  page.prose.flatMap((line): [string, string][] => {
    const [, name, content] = /^\| `((?:index|blob|double)\d)` \| (.+) \|$/.exec(line) ?? [];
    return name && content ? [[name, content]] : [];
  }),
);

it("the guide has one query for each of four questions", () => {
  expect(queries).toHaveLength(4);
});

it.each(queries)("uses only clauses, functions and columns of the dialect: %s", (query) => {
  const code = query.replace(/'[^']*'/g, "''");
  expect(code).not.toContain(";");
  const [, dataset = ""] = /dataset = "(\w+)"/.exec(page.lines.join("\n")) ?? [];
  const aliases = [...code.matchAll(/ AS (\w+)/g)].map(([, alias = ""]) => alias);
  const names = [...code.matchAll(/\b([A-Za-z_]\w*)\b(\()?/g)];
  const isKnown = (name: string, isCall: boolean) =>
    isCall
      ? FUNCTIONS.includes(name)
      : [...CLAUSES, ...OWN_COLUMNS, ...columns.keys(), ...aliases, dataset].includes(name);
  const unknown = names.filter(([, name = "", call]) => !isKnown(name, call !== undefined));
  expect(unknown.map(([text]) => text)).toEqual([]);
  // The dialect allows one table, and the clauses in this order.
  const clauses: readonly string[] =
    code.match(/\b(SELECT|FROM|WHERE|GROUP BY|ORDER BY|LIMIT)\b/g) ?? [];
  const order = ["SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT"];
  expect(clauses).toEqual(order.filter((each) => clauses.includes(each)));
  // Sums without the weight of a row are too low.
  const weights = /\b(SUM|sumIf)\(_sample_interval\b/g;
  expect(code.match(weights)).toHaveLength(code.match(/\b(SUM|sumIf)\(/g)?.length ?? 0);
  // A column that is selected for each group is in GROUP BY.
  const grouped = /GROUP BY ([\w, ]+?)(?= ORDER|$)/m.exec(code)?.[1]?.split(", ") ?? [];
  const plain = [...code.matchAll(/(?:SELECT|,) (?:\w+\(\w+\)|\w+) AS (\w+)/g)];
  expect(plain.map(([, alias]) => alias)).toEqual(grouped);
});

it("the guide's columns are the fields that Weir writes, in their order", () => {
  const source = readFileSync("src/statistics/usage.ts", "utf8");
  const written = /indexes: \[(.*)\],\s+blobs: \[(.*)\],\s+doubles: \[(.*)\],/.exec(source);
  const fields = [...(written ?? [])].slice(1).map((list) => list.split(", "));
  expect(fields).toEqual([
    ["identity"],
    ["rule.name", "tier", "outcome", "rule.mode"],
    ["requests", "quota"],
  ]);
  const words = ["identity", "rule", "tier", "outcome", "mode", "requests", "quota"];
  expect([...columns.keys()]).toEqual("index1 blob1 blob2 blob3 blob4 double1 double2".split(" "));
  for (const [at, content] of [...columns.values()].entries()) expect(content).toContain(words[at]);
});

it("the guide explains each outcome that Weir writes, and no other", () => {
  const source = readFileSync("src/statistics/usage.ts", "utf8");
  const words = [...source.matchAll(/(?<!from )"([a-z-]+)"/g)].map(([, word = ""]) => word);
  const outcomes = new Set(words.filter((word) => !/^(enforce|admitted|denied)$/.test(word)));
  const explained = [...page.prose.join("\n").matchAll(/\*\*`([\w-]+)`\*\*/g)];
  expect(explained.map(([, name]) => name).toSorted()).toEqual([...outcomes].toSorted());
});
