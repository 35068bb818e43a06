import type { Quota } from "../../config/quota.ts";
import type { Override } from "../../overrides/override.ts";
import type { ClientReport } from "../operations.ts";
import { Bar } from "./bar.tsx";
import type { DashboardContext } from "./context.ts";
import { effectText } from "./effect-text.ts";
import { countText, durationText, percentText } from "./format.ts";
import { Form, mayChange, ReasonField } from "./forms.tsx";
import { clientPath, RuleLink } from "./links.tsx";
import { Notice } from "./notice.tsx";
import { OverrideCard } from "./override-card.tsx";
import { ClientOverrideForm } from "./override-forms.tsx";
import { Time } from "./time.tsx";

interface ClientCardProps {
  readonly c: DashboardContext;
  readonly report: ClientReport;
  readonly now: number;
}

/** A client's state under one rule, and what an operator can do about it. */
export function ClientCard({ c, report, now }: ClientCardProps) {
  const { rule, client, countedBy, quotas, banMs, override, ruleOverride } = report;
  return (
    <section class="card client-card">
      <h2>
        <RuleLink rule={rule} />
        {banMs > 0 && <span class="badge limited">banned for {durationText(banMs)}</span>}
        {override && <span class="badge override">override</span>}
      </h2>
      <p class="hint">
        {countedBy !== undefined && (
          <>
            Counted by{" "}
            <code>
              <bdi>{countedBy}</bdi>
            </code>{" "}
            as{" "}
          </>
        )}
        <a class="client" href={clientPath(client, rule)}>
          <bdi>{client}</bdi>
        </a>
      </p>
      {ruleOverride && <RuleOverrideNotice override={ruleOverride} now={now} />}
      {quotas.map((quota) => (
        <QuotaBar quota={quota} />
      ))}
      {override && <OverrideCard c={c} override={override} now={now} />}
      {mayChange(c) && <Actions c={c} report={report} now={now} />}
    </section>
  );
}

/** Explains why the limits differ from those in the configuration, or why nothing is denied. */
function RuleOverrideNotice({ override, now }: { override: Override; now: number }) {
  return (
    <Notice kind="warning">
      <p>
        <b>
          The rule is overridden for all clients: <bdi>{effectText(override)}</bdi>
        </b>
        , ends <Time at={override.expiresAt} now={now} />
      </p>
      <p class="reason">
        “<bdi>{override.reason}</bdi>” – <bdi>{override.by}</bdi>
      </p>
    </Notice>
  );
}

function QuotaBar({ quota }: { quota: Quota }) {
  const { policy, limit, remaining, resetMs } = quota;
  const used = Math.max(0, limit - remaining);
  const isExhausted = remaining === 0;
  return (
    <div class="quota">
      <div class="quota-text">
        <b>
          <bdi>{policy}</bdi>
        </b>
        <span>
          {countText(used)} of {countText(limit)} used ({percentText(used, limit)})
        </span>
        <span>
          {isExhausted ? (
            <span class="badge limited">exhausted</span>
          ) : (
            `${countText(remaining)} left`
          )}
        </span>
        <span class="quota-reset">resets in {durationText(resetMs)}</span>
      </div>
      <Bar share={limit > 0 ? used / limit : 1} tone={isExhausted ? "limited" : "allowed"} />
    </div>
  );
}

function Actions({ c, report }: ClientCardProps) {
  const { rule, client, quotas, banMs } = report;
  return (
    <div class="actions">
      <details class="action" name={`actions-${rule}`}>
        <summary>Set override</summary>
        <ClientOverrideForm c={c} rule={rule} client={client} limits={quotas} />
      </details>
      <details class="action" name={`actions-${rule}`}>
        <summary>Reset counts</summary>
        <p class="hint">Removes the client's counts and its ban. It starts with its whole quota.</p>
        <Form c={c} class="fields" action="/_weir/clients/reset" hidden={{ rule, client }}>
          <ReasonField />
          <button type="submit" class="primary">
            Reset
          </button>
        </Form>
      </details>
      {banMs > 0 && (
        <details class="action" name={`actions-${rule}`}>
          <summary>Lift ban</summary>
          <Form c={c} class="fields" action="/_weir/clients/lift-ban" hidden={{ rule, client }}>
            <ReasonField />
            <button type="submit" class="primary">
              Lift ban
            </button>
          </Form>
        </details>
      )}
    </div>
  );
}
