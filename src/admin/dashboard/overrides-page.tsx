import { attempt } from "./attempt.ts";
import type { DashboardContext } from "./context.ts";
import { effectText } from "./effect-text.ts";
import { counted } from "./format.ts";
import { mayChange } from "./forms.tsx";
import { page } from "./layout.tsx";
import { ClientLink, RuleLink } from "./links.tsx";
import { Empty, Unavailable } from "./notice.tsx";
import { RemoveForm } from "./override-card.tsx";
import { Table } from "./table.tsx";
import { Time } from "./time.tsx";

/** The number of overrides on the page. There can be 10,000. */
const MAX_SHOWN = 500;

/** The page with all overrides that have not ended. */
export async function overridesPage(c: DashboardContext) {
  const overrides = await attempt(() => c.var.operations.overrides());
  const now = Date.now();
  const all = overrides.value ?? [];
  const shown = all.slice(0, MAX_SHOWN);
  const columns = [
    { label: "Rule" },
    { label: "Client" },
    { label: "Effect" },
    { label: "Ends" },
    { label: "Reason" },
    { label: "Set" },
  ];
  return page(c, {
    title: "Overrides",
    section: "/_weir/overrides",
    children: (
      <>
        <h1>Overrides</h1>
        {overrides.fault !== undefined && (
          <Unavailable what="The overrides" fault={overrides.fault} />
        )}
        {overrides.value && all.length === 0 && (
          <Empty title="No overrides">
            <p>
              An override changes a rule or the limit of a client for some time, without a deploy.
              Set one on the page of a <a href="/_weir/rules">rule</a> or a{" "}
              <a href="/_weir/clients">client</a>.
            </p>
          </Empty>
        )}
        {all.length > 0 && (
          <div class="card">
            <p class="hint">
              {counted(all.length, "override")}
              {all.length > shown.length && `, of which these are the newest ${shown.length}`}
            </p>
            <Table
              caption="Overrides"
              cards
              columns={mayChange(c) ? [...columns, { label: "Change" }] : columns}
            >
              {shown.map((override) => (
                <tr>
                  <th scope="row">
                    <RuleLink rule={override.rule} />
                  </th>
                  <td data-label="Client">
                    {override.client === undefined ? (
                      "all"
                    ) : (
                      <ClientLink client={override.client} rule={override.rule} />
                    )}
                  </td>
                  <td data-label="Effect">
                    <bdi>{effectText(override)}</bdi>
                  </td>
                  <td class="nowrap" data-label="Ends">
                    <Time at={override.expiresAt} now={now} />
                  </td>
                  <td class="reason" data-label="Reason">
                    <bdi>{override.reason}</bdi>
                  </td>
                  <td data-label="Set by">
                    <bdi>{override.by}</bdi>, <Time at={override.setAt} now={now} />
                  </td>
                  {mayChange(c) && (
                    <td>
                      <RemoveForm c={c} override={override} />
                    </td>
                  )}
                </tr>
              ))}
            </Table>
          </div>
        )}
      </>
    ),
  });
}
