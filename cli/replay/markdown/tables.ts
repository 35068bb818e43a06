import { count } from "../../admin/text.ts";
import { markdownCode, markdownText } from "../../print/markdown-text.ts";
import { estimated, knownCount, percent } from "../../print/numbers.ts";
import { isDifferent, modesOf } from "../compare-rules.ts";
import type { ComparedClient, Comparison, DeniedClient, Frequent, RuleReport } from "../report.ts";

/** How many clients, and how many rules, a table lists. */
const LISTED_CLIENTS = 10;
const LISTED_RULES = 50;

/** Returns the table of all rules. */
export function rulesTable(rules: readonly RuleReport[]): string {
  return table(
    [
      ...["Rule", "Mode", "Limit", "Requests", "Over the limit", "Had succeeded", "Clients"],
      "Clients over the limit",
    ],
    rules
      .slice(0, LISTED_RULES)
      .map((rule) => [
        markdownCode(rule.name),
        rule.mode,
        markdownText(rule.limits),
        count(rule.requests),
        `${count(rule.denied)} (${percent(rule.deniedShare)})`,
        knownCount(rule.deniedSucceeded),
        estimated(rule.clients, rule.isEstimate),
        estimated(rule.clientsDenied, rule.isDeniedEstimate),
      ]),
    rules.length - LISTED_RULES,
  );
}

/** Returns the table of the rules that were added, removed or changed, or whose verdicts differ. */
export function comparedRules({ rules }: Comparison): string {
  const different = rules.filter(isDifferent);
  const numberText = (value: number | undefined) => (value === undefined ? "" : count(value));
  return table(
    [
      ...["Rule", "Change", "Mode", "Over the limit before", "Over the limit"],
      ...["Denied before", "Denied"],
    ],
    different
      .slice(0, LISTED_RULES)
      .map((rule) => [
        markdownCode(rule.rule),
        rule.change,
        modesOf(rule),
        numberText(rule.overLimitBefore),
        numberText(rule.overLimit),
        numberText(rule.deniedBefore),
        numberText(rule.denied),
      ]),
    different.length - LISTED_RULES,
  );
}

/** Returns the table of the clients denied most. */
export function deniedTable(clients: readonly DeniedClient[]): string {
  return titled(
    "Clients denied most",
    table(
      ["Client", "Requests", "Denied", "Had succeeded", "User agent", "Path"],
      clients
        .slice(0, LISTED_CLIENTS)
        .map((client) => [
          markdownCode(client.client),
          count(client.requests),
          count(client.denied),
          knownCount(client.deniedSucceeded),
          ...textsOf(client),
        ]),
      clients.length - LISTED_CLIENTS,
    ),
  );
}

/** Returns a table of clients whose requests two configurations decide differently. */
export function comparedTable(title: string, clients: readonly ComparedClient[]): string {
  return titled(
    title,
    table(
      ["Client", "Requests", "Denied before", "Denied", "Had succeeded", "User agent", "Path"],
      clients
        .slice(0, LISTED_CLIENTS)
        .map((client) => [
          markdownCode(client.client),
          count(client.requests),
          count(client.deniedBefore),
          count(client.denied),
          knownCount(client.newlyDeniedSucceeded),
          ...textsOf(client),
        ]),
      clients.length - LISTED_CLIENTS,
    ),
  );
}

function textsOf({ userAgents, paths }: Record<"userAgents" | "paths", readonly Frequent[]>) {
  return [markdownCode(userAgents[0]?.text ?? ""), markdownCode(paths[0]?.text ?? "")];
}

function titled(title: string, content: string): string {
  return content === "" ? "" : `### ${title}\n\n${content}`;
}

/** @param left how many rows are not listed, if any */
function table(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  left: number,
): string {
  if (rows.length === 0) return "";
  const isNumber = headings.map((_, column) =>
    rows.every((row) => /^(?:[\d ]*(?: \(.*\))?|unknown)$/.test(row[column] ?? "")),
  );
  const lines = [headings, isNumber.map((each) => (each ? "---:" : "---")), ...rows].map(
    (cells) => `| ${cells.join(" | ")} |`,
  );
  return [...lines, ...(left > 0 ? ["", `and ${count(left)} more`] : [])].join("\n");
}
