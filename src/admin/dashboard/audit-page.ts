import type { AuditEntry } from "../../control/protocol.ts";
import { clientLink, empty, exactTime, foreign, html, ruleLink, table } from "./components.ts";
import type { DashboardContext } from "./forms.ts";
import { attempt, page, unavailable } from "./layout.ts";

/** The number of entries on a page. */
const PAGE_SIZE = 50;

/** The actions of entries in words. */
export const ACTIONS: Readonly<Record<AuditEntry["action"], string>> = {
  override: "set override",
  "remove-override": "removed override",
  reset: "reset counts",
  "lift-ban": "lifted ban",
  "log-in": "logged in",
};

/** The page with the changes of all operators. */
export async function auditPage(c: DashboardContext) {
  const before = beforeOf(c.req.query("before"));
  // One more entry shows whether there is a next page.
  const { value, fault } = await attempt(() => c.var.operations.audit(PAGE_SIZE + 1, before));
  const shown = value?.slice(0, PAGE_SIZE) ?? [];
  const last = shown.at(-1);
  const hasMore = (value?.length ?? 0) > PAGE_SIZE;
  const hint = html`<p>Every change of an operator appears here, with its reason. Nobody can edit it.</p>`;
  return page(c, {
    title: "Audit",
    section: "/_weir/audit",
    content: html`<h1>Audit</h1>
${fault !== undefined && unavailable("The changes", fault)}
${value?.length === 0 && empty(before === undefined ? "No changes yet" : "No older changes", hint)}
${shown.length > 0 && html`<div class="card">${auditTable(shown, Date.now())}</div>`}
<nav class="row" aria-label="Pages of the list">
${before !== undefined && html`<a href="/_weir/audit">Newest</a>`}
${hasMore && last && html`<a href="/_weir/audit?before=${last.id}">Older</a>`}
</nav>`,
  });
}

function auditTable(entries: readonly AuditEntry[], now: number) {
  return table<AuditEntry>({
    caption: "Changes, the newest first",
    cards: true,
    rows: entries,
    columns: [
      { label: "Time", cell: ({ at }) => exactTime(at, now) },
      { label: "Who", cell: ({ by }) => foreign(by) },
      { label: "What", class: "nowrap", cell: ({ action }) => ACTIONS[action] ?? action },
      { label: "Rule", cell: ({ rule }) => rule !== undefined && ruleLink(rule) },
      {
        label: "Client",
        cell: ({ client, rule }) => client !== undefined && clientLink(client, rule),
      },
      { label: "Why", class: "any", cell: ({ why }) => why !== undefined && foreign(why) },
      { label: "Before and after", cell: difference },
    ],
  });
}

function difference({ action, before, after }: AuditEntry) {
  const isEarlier = after === undefined && (action === "reset" || action === "lift-ban");
  if (before === undefined && after === undefined) return undefined;
  return html`<details><summary>Show</summary><pre tabindex="0"><code>- ${jsonText(before)}${
    // The entry of a reset is older than the reset, so it has no state after the reset.
    !isEarlier && `\n+ ${jsonText(after)}`
  }</code></pre></details>`;
}

function jsonText(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value, undefined, 2);
}

/** Reads the parameter `before` of a page: an id; undefined for the first page. */
export function beforeOf(text: string | undefined): number | undefined {
  const before = Number(text);
  return text !== undefined && Number.isSafeInteger(before) && before > 0 ? before : undefined;
}
