import { type Cell, styled, table } from "../../admin/text.ts";
import { printable } from "../../doctor/finding.ts";
import { modesOf } from "../compare-rules.ts";
import type { Comparison } from "../report.ts";
import { costOf } from "../summary.ts";
import { comparedClients } from "./clients.ts";

/** Returns the sections that compare two configurations: rules, and clients that are treated differently. */
export function comparisonSections(comparison: Comparison): string[] {
  const { against, mostNewlyDenied, mostNewlyAllowed, costBefore } = comparison;
  return [
    rulesTable(comparison),
    mostNewlyDenied.length > 0 ? comparedClients("Clients newly denied most", mostNewlyDenied) : "",
    mostNewlyAllowed.length > 0
      ? comparedClients("Clients newly allowed most", mostNewlyAllowed)
      : "",
    costBefore ? `With ${printable(against)}: ${costOf(costBefore)}` : "",
  ];
}

function rulesTable({ against, rules }: Comparison): string {
  const rows = rules.map((each): Cell[] => [
    each.rule,
    each.change === "same" ? each.change : { text: each.change, style: "yellow" },
    modesOf(each),
    each.overLimitBefore ?? "-",
    each.overLimit ?? "-",
    each.deniedBefore ?? "-",
    each.denied ?? "-",
  ]);
  return [
    styled("bold", `Rules, compared with ${printable(against)}`),
    table(
      ["RULE", "CHANGE", "MODE", "OVER LIMIT BEFORE", "OVER LIMIT", "DENIED BEFORE", "DENIED"],
      rows,
    ),
  ].join("\n");
}
