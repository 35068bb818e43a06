import type { Config } from "../../config/schema.ts";
import { keyPartName } from "../../request/identity.ts";
import { formatCount, formatDuration, formatPercent } from "../format.ts";
import type { ClientReport, ClientSelector, ReportedQuota } from "../operations.ts";
import { clientHistory, readHistory } from "./client-history.ts";
import {
  badge,
  bar,
  clientLink,
  code,
  empty,
  foreign,
  type Html,
  html,
  notice,
  openBar,
  ruleLink,
} from "./components.ts";
import {
  type DashboardContext,
  field,
  form,
  mayChange,
  primaryButton,
  readFields,
  reasonField,
  textField,
} from "./forms.ts";
import { type Attempt, attempt, headingWithRanges, page, unavailable } from "./layout.ts";
import {
  clientOverrideForm,
  limitedClients,
  overrideCard,
  overrideText,
} from "./overrides-page.ts";
import { queryOf, rangeOf } from "./ranges.ts";

/** A client's state under one rule, and an operator's actions for this client. */
function clientCard(c: DashboardContext, report: ClientReport, now: number): Html {
  const { rule, client, countedBy, quotas, limitSource, banMs, override, ruleOverride } = report;
  return html`<section class="card client-card">
<h2>${ruleLink(rule)}${banMs > 0 && badge("limited", `banned for ${formatDuration(banMs)}`)}${override && badge("override")}</h2>
<p class="note">${countedBy !== undefined && html`Counted by ${code(countedBy)} as `}${clientLink(client, rule)}</p>
${
  ruleOverride &&
  notice(
    "warning",
    html`<p>The rule is overridden for all clients: ${overrideText(ruleOverride, now)}</p>`,
  )
}
${quotas.map(quotaBar)}
${limitSource !== undefined && html`<p class="note">The client's own limit: ${limitSource}.</p>`}
${override && overrideCard(c, override, now)}
${mayChange(c) && actions(c, report)}
</section>`;
}

function quotaBar(quota: ReportedQuota): Html {
  const { policy, limit, remaining, resetMs, sliding } = quota;
  if (quota.isUnknown)
    return html`<p><b>${foreign(policy)}</b> <span class="note">the limit is unknown here</span></p>`;
  const used = Math.max(0, limit - remaining);
  if (quota.concurrent) return openBar(quota, used, "requests are open now");
  const isExhausted = remaining === 0;
  const left = isExhausted ? badge("limited", "exhausted") : `${formatCount(remaining)} left`;
  return html`<div><div class="row"><b>${foreign(policy)}</b>
<span>${formatCount(used)} of ${formatCount(limit)} used (${formatPercent(used, limit)})</span>
<span class="grow">${left}</span><span class="note">${sliding ? "more" : "resets"} in ${formatDuration(resetMs)}</span></div>
${bar(limit > 0 ? used / limit : 1, isExhausted ? "limited" : "allowed")}</div>`;
}

function actions(c: DashboardContext, { rule, client, quotas, banMs }: ClientReport): Html {
  const action = (label: string, content: Html) =>
    html`<details class="action" name="actions-${rule}"><summary>${label}</summary>${content}</details>`;
  const reasonForm = (path: string, label: string) => {
    const props = { action: `/_weir/clients/${path}`, hidden: { rule, client } };
    return form(c, props, [reasonField(), primaryButton(label)]);
  };
  const hint = html`<p class="note">Removes the client's counts and its ban.
Isolates may repeat an earlier denial for up to ten seconds.</p>`;
  return html`<div class="row">
${action("Set override", clientOverrideForm(c, rule, client, quotas))}
${action("Reset counts", html`${hint}${reasonForm("reset", "Reset")}`)}
${banMs > 0 && action("Lift ban", reasonForm("lift-ban", "Lift ban"))}
</div>`;
}

/** The alternatives in the keys of all rules, such as `ip` and `header:x-api-key`, without duplicates. */
function alternativesOf({ rules }: Pick<Config, "rules">): string[] {
  // If a request lacks all alternatives of a key, Weir counts the client by its address.
  const names = new Set(["ip"]);
  for (const { key } of rules) {
    for (const part of key.flat()) names.add(keyPartName(part));
  }
  names.delete("global");
  return [...names];
}

/** The maximum number of values by which an operator can look up a client. A key can have several parts. */
const VALUES = 3;

/** The page that looks up clients. With an identity in its address, it is the page of this client. */
export async function clientsPage(c: DashboardContext) {
  const client = c.req.query("client");
  if (client !== undefined) return lookedUpPage(c, { client }, c.req.query("rule"));
  const range = rangeOf(c.req.query("range"));
  const now = Date.now();
  const { value, fault } = await attempt(() => c.var.operations.statistics(queryOf(range, now)));
  return page(c, {
    title: "Clients",
    section: "/_weir/clients",
    refresh: `/_weir/clients?range=${range.id}`,
    content: html`${headingWithRanges("Clients", "/_weir/clients", range)}
${lookUpForm(c)}
${value ? limitedClients(value, now) : unavailable("The most limited clients", fault)}`,
  });
}

/**
 * Looks up a client by values that the operator knows. The values come in the body of a POST, so that they are in no
 * address, no log and no browser history.
 */
export async function lookUpPage(c: DashboardContext) {
  const fields = await readFields(c);
  const known: Record<string, string> = {};
  let client: string | undefined;
  for (let index = 0; index < VALUES; index += 1) {
    const value = fields.text(`value${index}`);
    if (value === "") continue;
    const by = fields.text(`by${index}`);
    if (by === "identity") client = value;
    else known[by] = value;
  }
  const selector = client === undefined ? { known } : { client };
  return lookedUpPage(c, selector, fields.text("rule") || undefined);
}

async function lookedUpPage(c: DashboardContext, selector: ClientSelector, rule?: string) {
  const isEmpty = "known" in selector && Object.keys(selector.known).length === 0;
  const reports: Promise<Attempt<readonly ClientReport[]>> = isEmpty
    ? Promise.resolve({ fault: "Enter a value, such as the client's address." })
    : attempt(() => c.var.operations.peek(selector, rule));
  const [found, history] = await Promise.all([reports, !isEmpty && readHistory(c, selector, rule)]);
  const identities = found.value?.map((report) => report.client) ?? [];
  const client = "client" in selector && html` <bdi class="client">${selector.client}</bdi>`;
  return page(c, {
    title: "Client",
    section: "/_weir/clients",
    content: html`<h1>Client${client}</h1>
${found.value ? clientCards(c, found.value) : notice("bad", found.fault, "alert")}
${found.value && history && clientHistory(history, identities)}
${lookUpForm(c)}`,
  });
}

function clientCards(c: DashboardContext, reports: readonly ClientReport[]): Html | Html[] {
  const hint = "No rule has a key that these values select. Look it up by another value below.";
  if (reports.length === 0) return empty("No rule counts this client", html`<p>${hint}</p>`);
  const now = Date.now();
  return reports.map((report) => clientCard(c, report, now));
}

function lookUpForm(c: DashboardContext): Html {
  const names = alternativesOf(c.var.config);
  const others = Array.from({ length: VALUES - 1 }, (_, index) => valueFields(index + 1, names));
  const content = html`${valueFields(0, names)}${primaryButton("Look up")}
<details class="whole"><summary>A key with several parts</summary>${others}</details>`;
  return html`<section class="card"><h2>Look up a client</h2>
${form(c, { action: "/_weir/clients" }, content)}
<p class="note">The value is sent in the body of the request and hashed. Weir stores and logs only the hash.</p></section>`;
}

function valueFields(index: number, names: readonly string[]): Html {
  const options = names.map((name) => html`<option value="${name}">${name}</option>`);
  const select = html`<select name="by${index}">${options}<option value="identity">identity (22 characters)</option></select>`;
  const value = textField({
    label: "Value",
    name: `value${index}`,
    maxlength: 8192,
    width: "wide",
    placeholder: index === 0 ? "such as 203.0.113.7" : "",
    more: index === 0 && html` required`,
  });
  return html`<div class="row grow">${field("Known value", select)}${value}</div>`;
}
