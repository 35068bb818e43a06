import type { AuditEntry } from "../../control/protocol.ts";
import { ClientLink, type Column, Empty, ExactTime, RuleLink, Table } from "./components.ts";
import type { DashboardContext } from "./forms.tsx";
import { attempt, page, Unavailable } from "./layout.tsx";

/** The number of entries on a page. */
const PAGE_SIZE = 50;

const ACTIONS: Readonly<Record<AuditEntry["action"], string>> = {
  override: "set override",
  "remove-override": "removed override",
  reset: "reset counts",
  "lift-ban": "lifted ban",
  "log-in": "logged in",
};

/** The page with the changes of all operators. */
export async function auditPage(c: DashboardContext) {
  const before = beforeOf(c.req.query("before"));
  // One entry more shows whether there is a next page.
  const entries = await attempt(() => c.var.operations.audit(PAGE_SIZE + 1, before));
  const shown = entries.value?.slice(0, PAGE_SIZE) ?? [];
  const last = shown.at(-1);
  const hasMore = (entries.value?.length ?? 0) > PAGE_SIZE;
  return page(c, {
    title: "Audit",
    section: "/_weir/audit",
    children: (
      <>
        <h1>Audit</h1>
        {entries.fault !== undefined && <Unavailable what="The changes" fault={entries.fault} />}
        {entries.value && shown.length === 0 && (
          <Empty title={before === undefined ? "No changes yet" : "No older changes"}>
            <p>Every change of an operator appears here, with its reason. Nobody can edit it.</p>
          </Empty>
        )}
        {shown.length > 0 && (
          <div class="card">
            <Table
              caption="Changes, the newest first"
              cards
              columns={columnsAt(Date.now())}
              rows={shown}
            />
          </div>
        )}
        <nav class="pager" aria-label="Pages of the list">
          {before !== undefined && <a href="/_weir/audit">Newest</a>}
          {hasMore && last && <a href={`/_weir/audit?before=${last.id}`}>Older</a>}
        </nav>
      </>
    ),
  });
}

function columnsAt(now: number): Column<AuditEntry>[] {
  return [
    { label: "Time", cell: ({ at }) => <ExactTime at={at} now={now} /> },
    { label: "Who", cell: ({ by }) => <bdi>{by}</bdi> },
    { label: "What", class: "nowrap", cell: ({ action }) => ACTIONS[action] ?? action },
    { label: "Rule", cell: ({ rule }) => rule !== undefined && <RuleLink rule={rule} /> },
    {
      label: "Client",
      cell: ({ client, rule }) =>
        client !== undefined && <ClientLink client={client} rule={rule} />,
    },
    { label: "Why", class: "reason", cell: ({ why }) => why !== undefined && <bdi>{why}</bdi> },
    { label: "Before and after", cell: (entry) => <Change {...entry} /> },
  ];
}

function Change({ action, before, after }: Pick<AuditEntry, "action" | "before" | "after">) {
  const isEarlier = after === undefined && (action === "reset" || action === "lift-ban");
  if (before === undefined && after === undefined) return null;
  return (
    <details class="change">
      <summary>Show</summary>
      <pre tabindex={0}>
        <code>
          {`- ${jsonText(before)}`}
          {/* The entry of a reset is older than the reset, so it does not say what comes after. */}
          {!isEarlier && `\n+ ${jsonText(after)}`}
        </code>
      </pre>
    </details>
  );
}

function jsonText(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value, undefined, 2);
}

function beforeOf(text: string | undefined): number | undefined {
  const before = Number(text);
  return text !== undefined && Number.isSafeInteger(before) && before > 0 ? before : undefined;
}
