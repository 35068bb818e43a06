import type { StoredDenials } from "../../control/protocol.ts";
import { DENIAL_MODES, formatCount } from "../format.ts";
import { beforeOf } from "./audit-page.ts";
import {
  badge,
  clientLink,
  denialsPath,
  empty,
  exactTime,
  foreign,
  type Html,
  html,
  relativeTime,
  ruleLink,
  table,
} from "./components.ts";
import { type DashboardContext, field, primaryButton, textField } from "./forms.ts";
import { attempt, page, unavailable } from "./layout.ts";

/** The number of entries on a page. */
const PAGE_SIZE = 100;

/** The page with the latest denials of all clients, or of one client or rule. */
export async function denialsPage(c: DashboardContext) {
  const filter = {
    rule: c.req.query("rule") || undefined,
    client: c.req.query("client")?.trim() || undefined,
  };
  const before = beforeOf(c.req.query("before"));
  const { rule, client } = filter;
  // One more entry shows whether there is a next page.
  const query = { rule, before, limit: PAGE_SIZE + 1 };
  const selector = client === undefined ? undefined : { client };
  const { value, fault } = await attempt(() => c.var.operations.denials(query, selector));
  const shown = value?.slice(0, PAGE_SIZE) ?? [];
  const last = shown.at(-1);
  const hasMore = (value?.length ?? 0) > PAGE_SIZE;
  const now = Date.now();
  return page(c, {
    title: "Denials",
    section: "/_weir/denials",
    ...(before === undefined && { refresh: denialsPath(filter) }),
    content: html`<h1>Denials</h1>
<div class="card">${filterForm(c, filter)}</div>
${fault !== undefined && unavailable("The denials", fault)}
<div id="denials" data-live>${value?.length === 0 && empty("No denials", "")}
${shown.length > 0 && html`<div class="card">${denialTable(shown, now)}</div>`}</div>
<p class="note">An entry has the denials of a client in one minute, by one policy. The newest 2,000 of 7 days are kept.
Isolates upload them every 5 to 25 seconds.</p>
<nav class="row" aria-label="Pages of the list">
${before !== undefined && html`<a href="${denialsPath(filter)}">Newest</a>`}
${hasMore && last && html`<a href="${denialsPath({ ...filter, before: `${last.id}` })}">Older</a>`}
</nav>`,
  });
}

function filterForm(
  c: DashboardContext,
  {
    rule,
    client = "",
  }: { readonly rule?: string | undefined; readonly client?: string | undefined },
): Html {
  // A rule that was removed from the configuration may still have denials.
  const names = new Set([...(rule ? [rule] : []), ...c.var.config.rules.map(({ name }) => name)]);
  const options = [...names].map(
    (name) => html`<option value="${name}"${name === rule && " selected"}>${name}</option>`,
  );
  const select = html`<select name="rule"><option value="">all rules</option>${options}</select>`;
  const identity = textField({
    ...{ label: "Client's identity", name: "client", value: client, maxlength: 22 },
    placeholder: "all clients",
    width: "wide",
  });
  return html`<form method="get" action="/_weir/denials" class="row">${field("Rule", select)}${identity}${primaryButton("Show")}</form>
<p class="note">By another value, such as an address: <a href="/_weir/clients">look up the client</a>.</p>`;
}

function denialTable(denials: readonly StoredDenials[], now: number): Html {
  return table<StoredDenials>({
    caption: "Denials of clients, the newest first",
    cards: true,
    rows: denials,
    columns: [
      { label: "Last", cell: ({ lastAt }) => exactTime(lastAt, now) },
      { label: "Client", cell: ({ client, rule }) => clientLink(client, rule) },
      { label: "Rule", cell: ({ rule }) => ruleLink(rule) },
      { label: "Policy", cell: ({ policy }) => foreign(policy) },
      { label: "Requests", number: true, cell: ({ count }) => formatCount(count) },
      { label: "What", class: "nowrap", cell: ({ mode }) => modeOf(mode) },
      { label: "Place", cell: ({ colo }) => colo !== undefined && foreign(colo) },
      { label: "May retry", class: "nowrap", cell: (each) => retryOf(each, now) },
    ],
  });
}

/** What happened to denied requests. */
export function modeOf(mode: StoredDenials["mode"]): Html {
  const kind = mode === "enforce" || mode === "local" ? "limited" : "shadow";
  return badge(kind, DENIAL_MODES[mode] ?? mode);
}

/** The time from which the client may try again. */
export function retryOf({ lastAt, retryAfterMs }: StoredDenials, now: number): Html | string {
  return retryAfterMs === undefined ? "never" : relativeTime(lastAt + retryAfterMs, now);
}
