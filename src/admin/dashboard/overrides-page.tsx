import { type Override, overrideId } from "../../overrides/override.ts";
import type { LimitedClient } from "../../statistics/sums.ts";
import { formatCount, formatEffect, formatTime } from "../format.ts";
import type { RuleView } from "../operations.ts";
import { Bar, ClientLink, type Column, Empty, RuleLink, Table, Time } from "./components.ts";
import { type DashboardContext, ExpiryField, Form, mayChange, ReasonField } from "./forms.tsx";
import { attempt, page, Unavailable } from "./layout.tsx";

/** The number of overrides on the page. There can be 10,000. */
const MAX_SHOWN = 500;

/** The page with all overrides that have not ended. */
export async function overridesPage(c: DashboardContext) {
  const overrides = await attempt(() => c.var.operations.overrides());
  const all = overrides.value ?? [];
  const shown = all.slice(0, MAX_SHOWN);
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
              {formatCount(all.length, "override")}
              {all.length > shown.length && `, of which these are the newest ${shown.length}`}
            </p>
            <Table caption="Overrides" cards columns={columnsFor(c, Date.now())} rows={shown} />
          </div>
        )}
      </>
    ),
  });
}

function columnsFor(c: DashboardContext, now: number): Column<Override>[] {
  const change: Column<Override> = {
    label: "Change",
    cell: (override) => <RemoveForm c={c} override={override} />,
  };
  return [
    { label: "Rule", cell: ({ rule }) => <RuleLink rule={rule} /> },
    {
      label: "Client",
      cell: ({ client, rule }) =>
        client === undefined ? "all" : <ClientLink client={client} rule={rule} />,
    },
    { label: "Effect", cell: ({ effect }) => <bdi>{formatEffect(effect)}</bdi> },
    { label: "Ends", class: "nowrap", cell: ({ expiresAt }) => <Time at={expiresAt} now={now} /> },
    { label: "Reason", class: "reason", cell: ({ reason }) => <bdi>{reason}</bdi> },
    {
      label: "Set",
      cell: ({ by, setAt }) => (
        <>
          <bdi>{by}</bdi>, <Time at={setAt} now={now} />
        </>
      ),
    },
    ...(mayChange(c) ? [change] : []),
  ];
}

interface OverrideProps {
  readonly c: DashboardContext;
  readonly override: Override;
  readonly now: number;
}

/** An override, and the form that removes it. */
export function OverrideCard({ c, override, now }: OverrideProps) {
  return (
    <div class="override-card">
      <p>
        <b>
          <bdi>{formatEffect(override.effect)}</bdi>
        </b>
        , ends <Time at={override.expiresAt} now={now} />
      </p>
      <p class="reason">
        “<bdi>{override.reason}</bdi>” – <bdi>{override.by}</bdi>,{" "}
        <Time at={override.setAt} now={now} />
      </p>
      <RemoveForm c={c} override={override} />
    </div>
  );
}

/** The form that removes an override; nothing for read-only operators. */
function RemoveForm({ c, override }: Omit<OverrideProps, "now">) {
  if (!mayChange(c)) return null;
  const { rule, client } = override;
  return (
    <details class="action">
      <summary>Remove</summary>
      <Form
        c={c}
        class="fields"
        action="/_weir/overrides/remove"
        hidden={{ id: overrideId(override), rule, client }}
      >
        <ReasonField />
        <button type="submit">Remove override</button>
      </Form>
    </details>
  );
}

/** The form that sets the override of a rule. */
export function RuleOverrideForm({ c, rule }: { c: DashboardContext; rule: RuleView }) {
  return (
    <Form
      c={c}
      class="fields"
      action="/_weir/overrides"
      hidden={{ target: "rule", rule: rule.name }}
    >
      <label class="field">
        <span>Mode</span>
        <select name="mode">
          <option value="">unchanged ({rule.configuredMode})</option>
          <option value="enforce">enforce</option>
          <option value="shadow">shadow: deny nothing</option>
          <option value="off">off: do not apply</option>
        </select>
      </label>
      <label class="field">
        <span>Limits ×</span>
        <input name="factor" type="number" min="0" step="any" placeholder="1" inputmode="decimal" />
      </label>
      <ExpiryField />
      <ReasonField name="reason" />
      <button type="submit" class="primary">
        Set override
      </button>
    </Form>
  );
}

interface ClientFormProps {
  readonly c: DashboardContext;
  readonly rule: string;
  readonly client: string;
  /** The policies of the rule with the client's limits. */
  readonly limits: readonly { readonly policy: string; readonly limit: number }[];
}

/** The form that sets the override of a client under a rule. */
export function ClientOverrideForm({ c, rule, client, limits }: ClientFormProps) {
  return (
    <Form
      c={c}
      class="fields"
      action="/_weir/overrides"
      hidden={{ target: "client", rule, client }}
    >
      <fieldset class="wide">
        <legend>What changes for this client</legend>
        {limits.map(({ policy, limit }, index) => (
          <label class="choice">
            <input
              type="radio"
              name="kind"
              value="limits"
              checked={index === 0}
              hidden={index > 0}
            />
            <span>
              {index === 0 ? "Limit of" : "and of"} <bdi>{policy}</bdi>
            </span>
            <input
              name={`limit:${policy}`}
              type="number"
              min="0"
              step="1"
              placeholder={String(limit)}
              aria-label={`New limit of ${policy}`}
            />
          </label>
        ))}
        <label class="choice">
          <input type="radio" name="kind" value="factor" checked={limits.length === 0} />
          <span>All limits ×</span>
          <input
            name="factor"
            type="number"
            min="0"
            step="any"
            placeholder="2"
            aria-label="Factor"
          />
        </label>
        <label class="choice">
          <input type="radio" name="kind" value="unlimited" />
          <span>No limit</span>
        </label>
        <label class="choice">
          <input type="radio" name="kind" value="blocked" />
          <span>Block: deny every request</span>
        </label>
      </fieldset>
      <ExpiryField />
      <ReasonField name="reason" />
      <button type="submit" class="primary">
        Set override
      </button>
    </Form>
  );
}

interface LimitedClientsProps {
  readonly clients: readonly LimitedClient[];
  /** From when on the clients are counted; undefined if it is unknown. */
  readonly from: number | undefined;
  readonly now: number;
  /** Leaves out the column with the rule. */
  readonly ofOneRule?: boolean;
}

const CAPTION = "Most limited clients";

/** The clients that were limited most often. Each links to the page on which an operator can act. */
export function LimitedClients({ clients, from, now, ofOneRule = false }: LimitedClientsProps) {
  const max = Math.max(1, ...clients.map(({ count }) => count));
  const rule: Column<LimitedClient> = {
    label: "Rule",
    cell: (each) => <RuleLink rule={each.rule} />,
  };
  const columns: Column<LimitedClient>[] = [
    {
      label: "Client",
      cell: ({ client, rule, shadow }) => (
        <>
          <ClientLink client={client} rule={rule} />
          {shadow && <span class="badge shadow">shadow</span>}
        </>
      ),
    },
    ...(ofOneRule ? [] : [rule]),
    {
      label: "Limited",
      number: true,
      cell: ({ count, error, shadow }) => (
        <>
          {error > 0 && <small>{formatCount(count - error)} to </small>}
          {formatCount(count)}
          <Bar share={count / max} tone={shadow ? "shadow" : "limited"} />
        </>
      ),
    },
    { label: "Last", class: "nowrap", cell: ({ lastAt }) => <Time at={lastAt} now={now} /> },
  ];
  return (
    <section class="card" id="limited-clients" data-live>
      <h2>{CAPTION}</h2>
      {from !== undefined && <p class="hint">Counted by the hour, since {formatTime(from)}.</p>}
      {clients.length === 0 ? (
        <p class="none">No client was limited in this time.</p>
      ) : (
        <Table caption={CAPTION} columns={columns} rows={clients} />
      )}
    </section>
  );
}
