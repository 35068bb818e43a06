import type { RuleView } from "../operations.ts";
import type { DashboardContext } from "./context.ts";
import { ExpiryField, Form, ReasonField } from "./forms.tsx";

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
