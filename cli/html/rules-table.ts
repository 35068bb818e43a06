import { countText, percentText } from "../../src/admin/dashboard/format.ts";
import type { Tone } from "../../src/admin/dashboard/tone.ts";
import type { RuleReport } from "../replay/report.ts";
import { bar } from "./bar.ts";
import { type Html, html } from "./markup.ts";
import type { StatedFacts } from "./stated-facts.ts";
import { table } from "./table.ts";
import { estimateText, knownText, shown } from "./texts.ts";

/** A rule with the place of its card in the report. */
export interface ListedRule {
  readonly rule: RuleReport;
  /** The id of its card; undefined if it has none, because it denied nothing. */
  readonly id: string | undefined;
}

/** Returns the rules in the order of their denied requests. */
export function listedRules(rules: readonly RuleReport[]): ListedRule[] {
  return [...rules]
    .sort((a, b) => b.denied - a.denied)
    .map((rule, index) => ({ rule, id: rule.denied > 0 ? `rule-${index + 1}` : undefined }));
}

/** What happens to requests over the limit in each mode. */
export const MODES: Readonly<Record<RuleReport["mode"], { tone: Tone; denied: string }>> = {
  enforce: { tone: "limited", denied: "Denied" },
  shadow: { tone: "shadow", denied: "Would deny" },
  mark: { tone: "undecided", denied: "Marked" },
};

/** All rules with their numbers. */
export function rulesTable(rules: readonly ListedRule[], { statuses }: StatedFacts): Html {
  const columns = [
    { label: "Rule" },
    { label: "Key" },
    { label: "Limits" },
    { label: "Requests", number: true },
    { label: "Over the limit", number: true },
    ...(statuses ? [{ label: "Had succeeded", number: true }] : []),
    { label: "Clients over the limit", number: true },
  ];
  const caption = "All rules, those with the most requests over the limit first";
  return table(
    { id: "rules-table", caption, columns, cards: true },
    rules.map((each) => row(each, statuses)),
  );
}

function row({ rule, id }: ListedRule, hasStatuses: boolean): Html {
  const { name, mode, match, key, limits, requests, denied, deniedSucceeded } = rule;
  const clients = `${estimateText(rule.clientsDenied, rule.isDeniedEstimate)} of ${estimateText(rule.clients, rule.isEstimate)}`;
  const title = id === undefined ? html`${shown(name)}` : html`<a href="#${id}">${shown(name)}</a>`;
  return html`<tr${id !== undefined && html` data-rule="${id}"`}><th scope="row">${title} ${modeBadge(mode)}<div class="match"><code>${shown(match)}</code></div></th><td data-label="Key"><code>${shown(key)}</code></td><td data-label="Limits">${shown(limits)}</td><td class="number" data-label="Requests">${countText(requests)}</td><td class="number" data-label="Over the limit">${countText(denied)} <small>${percentText(denied, requests)}</small>${bar(denied / Math.max(1, requests), MODES[mode]?.tone ?? "limited")}</td>${hasStatuses && html`<td class="number" data-label="Had succeeded">${knownText(deniedSucceeded)}</td>`}<td class="number" data-label="Clients over the limit">${clients}</td></tr>`;
}

/** The mode of a rule. Enforced rules, which are most, have no badge. */
export function modeBadge(mode: RuleReport["mode"]): Html | false {
  return mode !== "enforce" && html`<span class="badge ${mode}">${mode}</span>`;
}
