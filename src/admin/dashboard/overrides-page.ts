import type { StatisticsReport } from "../../control/protocol.ts";
import { type Override, overrideId } from "../../overrides/override.ts";
import type { LimitedClient } from "../../statistics/sums.ts";
import { formatCount, formatEffect, formatTime } from "../format.ts";
import type { RuleView } from "../operations.ts";
import {
  badge,
  bar,
  type Column,
  clientLink,
  empty,
  foreign,
  type Html,
  html,
  relativeTime,
  ruleLink,
  table,
} from "./components.ts";
import {
  type DashboardContext,
  field,
  form,
  mayChange,
  primaryButton,
  reasonField,
} from "./forms.ts";
import { attempt, page, unavailable } from "./layout.ts";

/** The maximum number of overrides on the page, of up to 1,000 overrides. */
const MAX_SHOWN = 500;

/** The page with all overrides that have not ended. */
export async function overridesPage(c: DashboardContext) {
  const { value, fault } = await attempt(() => c.var.operations.overrides());
  const all = value ?? [];
  const shown = all.slice(0, MAX_SHOWN);
  const newest = all.length > shown.length && `, of which these are the newest ${shown.length}`;
  const hint = html`<p>An override changes a rule or the limit of a client for some time, without a deploy.
Set one on the page of a <a href="/_weir/rules">rule</a> or a <a href="/_weir/clients">client</a>.</p>`;
  return page(c, {
    title: "Overrides",
    section: "/_weir/overrides",
    content: html`<h1>Overrides</h1>
${fault !== undefined && unavailable("The overrides", fault)}
${value?.length === 0 && empty("No overrides", hint)}
${
  all.length > 0 &&
  html`<div class="card"><p class="note">${formatCount(all.length, "override")}${newest}</p>
${overridesTable(c, shown, Date.now())}</div>`
}`,
  });
}

function overridesTable(c: DashboardContext, overrides: readonly Override[], now: number): Html {
  const change: Column<Override> = { label: "Change", cell: (each) => removeForm(c, each) };
  return table<Override>({
    caption: "Overrides",
    cards: true,
    rows: overrides,
    columns: [
      { label: "Rule", cell: ({ rule }) => ruleLink(rule) },
      {
        label: "Client",
        cell: ({ client, rule }) => (client === undefined ? "all" : clientLink(client, rule)),
      },
      { label: "Effect", cell: ({ effect }) => foreign(formatEffect(effect)) },
      { label: "Ends", class: "nowrap", cell: ({ expiresAt }) => relativeTime(expiresAt, now) },
      { label: "Reason", class: "any", cell: ({ reason }) => foreign(reason) },
      { label: "Set", cell: ({ by, setAt }) => [foreign(by), ", ", relativeTime(setAt, now)] },
      ...(mayChange(c) ? [change] : []),
    ],
  });
}

/** The effect of an override, its end and its reason. */
export function overrideText(
  { effect, expiresAt, reason, by, setAt }: Override,
  now: number,
): Html {
  return html`<b>${foreign(formatEffect(effect))}</b>, ends ${relativeTime(expiresAt, now)}<br>
<span class="any">“${foreign(reason)}” – ${foreign(by)}, ${relativeTime(setAt, now)}</span>`;
}

/** An override, and the form that removes it. */
export function overrideCard(c: DashboardContext, override: Override, now: number): Html {
  return html`<div class="override-card"><p>${overrideText(override, now)}</p>${removeForm(c, override)}</div>`;
}

/** The form that removes an override; nothing for read-only operators. */
function removeForm(c: DashboardContext, override: Override): Html | undefined {
  if (!mayChange(c)) return undefined;
  const { rule, client } = override;
  const hidden = { id: overrideId(override), rule, client };
  const content = html`${reasonField()}<button type="submit">Remove override</button>`;
  return html`<details class="action"><summary>Remove</summary>${form(c, { action: "/_weir/overrides/remove", hidden }, content)}</details>`;
}

/** The form that sets the override of a rule. */
export function ruleOverrideForm(c: DashboardContext, { name, configuredMode }: RuleView): Html {
  const mode = html`<select name="mode"><option value="">unchanged (${configuredMode})</option>
<option value="enforce">enforce</option><option value="shadow">shadow: deny nothing</option>
<option value="off">off: do not apply</option></select>`;
  const factor = html`<input name="factor" type="number" min="0" step="any" placeholder="1" inputmode="decimal">`;
  const fields = [field("Mode", mode), field("Limits ×", factor)];
  return overrideForm(c, { target: "rule", rule: name }, fields);
}

/**
 * The form that sets the override of a client under a rule.
 *
 * @param limits the policies of the rule with the client's limits
 */
export function clientOverrideForm(
  c: DashboardContext,
  rule: string,
  client: string,
  limits: readonly { readonly policy: string; readonly limit: number }[],
): Html {
  const choice = (kind: string, text: Html | string, input?: Html, state?: string | false) =>
    html`<label class="choice"><input type="radio" name="kind" value="${kind}"${state && ` ${state}`}><span>${text}</span>${input}</label>`;
  const policies = limits.map(({ policy, limit }, index) => {
    const input = html`<input name="limit:${policy}" type="number" min="0" step="1" placeholder="${limit}" aria-label="New limit of ${policy}">`;
    const text = html`${index === 0 ? "Limit of" : "and of"} ${foreign(policy)}`;
    return choice("limits", text, input, index === 0 ? "checked" : "hidden");
  });
  const factor = html`<input name="factor" type="number" min="0" step="any" placeholder="2" aria-label="Factor">`;
  const choices = html`<fieldset class="whole"><legend>What changes for this client</legend>${policies}
${choice("factor", "All limits ×", factor, limits.length === 0 && "checked")}
${choice("unlimited", "No limit")}${choice("blocked", "Block: deny every request")}</fieldset>`;
  return overrideForm(c, { target: "client", rule, client }, choices);
}

const EXPIRIES = [
  ["15m", "15 minutes"],
  ["1h", "1 hour"],
  ["8h", "8 hours"],
  ["1d", "1 day"],
  ["7d", "7 days"],
  ["30d", "30 days"],
] as const;

function overrideForm(
  c: DashboardContext,
  hidden: Readonly<Record<string, string>>,
  fields: Html | Html[],
): Html {
  const options = EXPIRIES.map(([value, label]) => {
    return html`<option value="${value}"${value === "1h" && " selected"}>${label}</option>`;
  });
  const expiry = field("Ends after", html`<select name="expiresIn">${options}</select>`);
  const content = [fields, expiry, reasonField("reason"), primaryButton("Set override")];
  return form(c, { action: "/_weir/overrides", hidden }, content);
}

const CAPTION = "Most limited clients";

/**
 * The most limited clients. Each links to the page on which an operator can act.
 *
 * @param ofOneRule omits the column with the rule
 */
export function limitedClients(
  { clients, clientsFrom }: Pick<StatisticsReport, "clients" | "clientsFrom">,
  now: number,
  ofOneRule = false,
): Html {
  const max = Math.max(1, ...clients.map(({ count }) => count));
  const rule: Column<LimitedClient> = { label: "Rule", cell: (each) => ruleLink(each.rule) };
  const columns: Column<LimitedClient>[] = [
    {
      label: "Client",
      cell: ({ client, rule, shadow }) => [clientLink(client, rule), shadow && badge("shadow")],
    },
    ...(ofOneRule ? [] : [rule]),
    {
      label: "Limited",
      number: true,
      cell: ({ count, error, shadow }) => [
        error > 0 && html`<small>${formatCount(count - error)} to </small>`,
        formatCount(count),
        bar(count / max, shadow ? "shadow" : "limited"),
      ],
    },
    { label: "Last", class: "nowrap", cell: ({ lastAt }) => relativeTime(lastAt, now) },
  ];
  const since =
    clientsFrom !== undefined &&
    html`<p class="note">Counted by the hour, since ${formatTime(clientsFrom)}.</p>`;
  const list =
    clients.length > 0
      ? table({ caption: CAPTION, columns, rows: clients })
      : html`<p class="note">No client was limited in this time.</p>`;
  return html`<section class="card" id="limited-clients" data-live><h2>${CAPTION}</h2>${since}${list}</section>`;
}
