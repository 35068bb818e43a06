import { type Override, overrideId } from "../../overrides/override.ts";
import type { LimitedClient } from "../../statistics/sums.ts";
import { formatCount, formatEffect, formatTime } from "../format.ts";
import type { RuleView } from "../operations.ts";
import { Bar, ClientLink, type Column, RuleLink, Table, Time } from "./components.tsx";
import type { DashboardContext } from "./context.ts";
import { ExpiryField, Form, mayChange, ReasonField } from "./forms.tsx";

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
export function RemoveForm({ c, override }: Omit<OverrideProps, "now">) {
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
const CLIENT: Column = { label: "Client" };
const COUNTS: readonly Column[] = [{ label: "Limited", number: true }, { label: "Last" }];

/** The clients that were limited most often. Each links to the page on which an operator can act. */
export function LimitedClients({ clients, from, now, ofOneRule = false }: LimitedClientsProps) {
  const max = Math.max(1, ...clients.map(({ count }) => count));
  const columns = ofOneRule ? [CLIENT, ...COUNTS] : [CLIENT, { label: "Rule" }, ...COUNTS];
  return (
    <section class="card" id="limited-clients" data-live>
      <h2>{CAPTION}</h2>
      {from !== undefined && <p class="hint">Counted by the hour, since {formatTime(from)}.</p>}
      {clients.length === 0 ? (
        <p class="none">No client was limited in this time.</p>
      ) : (
        <Table caption={CAPTION} columns={columns}>
          {clients.map((each) => (
            <tr>
              <th scope="row">
                <ClientLink client={each.client} rule={each.rule} />
                {each.shadow && <span class="badge shadow">shadow</span>}
              </th>
              {!ofOneRule && (
                <td>
                  <RuleLink rule={each.rule} />
                </td>
              )}
              <td class="number">
                <Count {...each} />
                <Bar share={each.count / max} tone={each.shadow ? "shadow" : "limited"} />
              </td>
              <td class="nowrap">
                <Time at={each.lastAt} now={now} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

function Count({ count, error }: Pick<LimitedClient, "count" | "error">) {
  if (error === 0) return <>{formatCount(count)}</>;
  return (
    <>
      <small>{formatCount(count - error)} to </small>
      {formatCount(count)}
    </>
  );
}
