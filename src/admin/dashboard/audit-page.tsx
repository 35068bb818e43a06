import type { AuditEntry } from "../../control/protocol.ts";
import { attempt } from "./attempt.ts";
import type { DashboardContext } from "./context.ts";
import { page } from "./layout.tsx";
import { ClientLink, RuleLink } from "./links.tsx";
import { Empty, Unavailable } from "./notice.tsx";
import { Table } from "./table.tsx";
import { ExactTime } from "./time.tsx";

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
        {shown.length > 0 && <AuditTable entries={shown} />}
        <nav class="pager" aria-label="Pages of the list">
          {before !== undefined && <a href="/_weir/audit">Newest</a>}
          {hasMore && last && <a href={`/_weir/audit?before=${last.id}`}>Older</a>}
        </nav>
      </>
    ),
  });
}

function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  const now = Date.now();
  return (
    <div class="card">
      <Table
        caption="Changes, the newest first"
        cards
        columns={[
          { label: "Time" },
          { label: "Who" },
          { label: "What" },
          { label: "Rule" },
          { label: "Client" },
          { label: "Why" },
          { label: "Before and after" },
        ]}
      >
        {entries.map((entry) => (
          <tr>
            <th scope="row">
              <ExactTime at={entry.at} now={now} />
            </th>
            <td data-label="Who">
              <bdi>{entry.by}</bdi>
            </td>
            <td class="nowrap" data-label="What">
              {ACTIONS[entry.action] ?? entry.action}
            </td>
            <td data-label="Rule">{entry.rule !== undefined && <RuleLink rule={entry.rule} />}</td>
            <td data-label="Client">
              {entry.client !== undefined && <ClientLink client={entry.client} rule={entry.rule} />}
            </td>
            <td class="reason" data-label="Why">
              {entry.why !== undefined && <bdi>{entry.why}</bdi>}
            </td>
            <td data-label="Before and after">
              <Change {...entry} />
            </td>
          </tr>
        ))}
      </Table>
    </div>
  );
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
