import type { Quota } from "../../config/custom.ts";
import type { KeyPart } from "../../config/key.ts";
import type { Config } from "../../config/schema.ts";
import type { Override } from "../../overrides/override.ts";
import { formatCount, formatDuration, formatEffect, formatPercent } from "../format.ts";
import type { ClientReport, ClientSelector } from "../operations.ts";
import { Bar, ClientLink, Empty, Notice, RuleLink, Time } from "./components.ts";
import {
  type DashboardContext,
  Form,
  mayChange,
  ReasonField,
  readFields,
  TextField,
} from "./forms.tsx";
import { type Attempt, attempt, page, RangeSwitch, Unavailable } from "./layout.tsx";
import { ClientOverrideForm, LimitedClients, OverrideCard } from "./overrides-page.tsx";
import { queryOf, rangeOf } from "./ranges.ts";

interface ClientCardProps {
  readonly c: DashboardContext;
  readonly report: ClientReport;
  readonly now: number;
}

/** A client's state under one rule, and what an operator can do about it. */
function ClientCard({ c, report, now }: ClientCardProps) {
  const { rule, client, countedBy, quotas, banMs, override, ruleOverride } = report;
  return (
    <section class="card client-card">
      <h2>
        <RuleLink rule={rule} />
        {banMs > 0 && <span class="badge limited">banned for {formatDuration(banMs)}</span>}
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
        <ClientLink client={client} rule={rule} />
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
          The rule is overridden for all clients: <bdi>{formatEffect(override.effect)}</bdi>
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
          {formatCount(used)} of {formatCount(limit)} used ({formatPercent(used, limit)})
        </span>
        <span>
          {isExhausted ? (
            <span class="badge limited">exhausted</span>
          ) : (
            `${formatCount(remaining)} left`
          )}
        </span>
        <span class="quota-reset">resets in {formatDuration(resetMs)}</span>
      </div>
      <Bar share={limit > 0 ? used / limit : 1} tone={isExhausted ? "limited" : "allowed"} />
    </div>
  );
}

function Actions({ c, report }: ClientCardProps) {
  const { rule, client, quotas, banMs } = report;
  const group = `actions-${rule}`;
  return (
    <div class="actions">
      <details class="action" name={group}>
        <summary>Set override</summary>
        <ClientOverrideForm c={c} rule={rule} client={client} limits={quotas} />
      </details>
      <details class="action" name={group}>
        <summary>Reset counts</summary>
        <p class="hint">Removes the client's counts and its ban. It starts with its whole quota.</p>
        <ReasonForm c={c} report={report} action="/_weir/clients/reset" label="Reset" />
      </details>
      {banMs > 0 && (
        <details class="action" name={group}>
          <summary>Lift ban</summary>
          <ReasonForm c={c} report={report} action="/_weir/clients/lift-ban" label="Lift ban" />
        </details>
      )}
    </div>
  );
}

interface ReasonFormProps extends Omit<ClientCardProps, "now"> {
  readonly action: string;
  readonly label: string;
}

/** A form for a change that needs nothing but a reason. */
function ReasonForm({ c, report: { rule, client }, action, label }: ReasonFormProps) {
  return (
    <Form c={c} class="fields" action={action} hidden={{ rule, client }}>
      <ReasonField />
      <button type="submit" class="primary">
        {label}
      </button>
    </Form>
  );
}

/** The alternatives in the keys of all rules, such as `ip` and `header:x-api-key`, without duplicates. */
function alternativesOf({ rules }: Pick<Config, "rules">): string[] {
  // Weir counts a client by its address if a request has no alternative of a key.
  const names = new Set(["ip"]);
  for (const { key } of rules) {
    for (const part of key.flat()) names.add(nameOf(part));
  }
  names.delete("global");
  return [...names];
}

function nameOf(part: KeyPart): string {
  return "name" in part ? `${part.kind}:${part.name}` : part.kind;
}

/** The number of values by which an operator can look up a client. A key can have several parts. */
const VALUES = 3;

/** The page that looks up clients. With an identity in the address, it is the page of this client. */
export async function clientsPage(c: DashboardContext) {
  const client = c.req.query("client");
  if (client !== undefined) return lookedUpPage(c, { client }, c.req.query("rule"));
  const range = rangeOf(c.req.query("range"));
  const now = Date.now();
  const report = await attempt(() => c.var.operations.statistics(queryOf(range, now)));
  return page(c, {
    title: "Clients",
    section: "/_weir/clients",
    refresh: `/_weir/clients?range=${range.id}`,
    children: (
      <>
        <div class="heading">
          <h1>Clients</h1>
          <RangeSwitch path="/_weir/clients" range={range} />
        </div>
        <LookUpForm c={c} />
        {report.value ? (
          <LimitedClients
            clients={report.value.clients}
            from={report.value.clientsFrom}
            now={now}
          />
        ) : (
          <Unavailable what="The most limited clients" fault={report.fault} />
        )}
      </>
    ),
  });
}

/**
 * Looks up a client by values that the operator knows. The values come in the body of a POST, so that no
 * address, no log and no history of a browser contains them.
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
  const reports = isEmpty
    ? { fault: "Enter a value, such as the client's address." }
    : await attempt(() => c.var.operations.peek(selector, rule));
  return page(c, {
    title: "Client",
    section: "/_weir/clients",
    children: (
      <>
        <h1>
          {"client" in selector ? (
            <>
              Client <bdi class="client">{selector.client}</bdi>
            </>
          ) : (
            "Client"
          )}
        </h1>
        <Reports c={c} reports={reports} />
        <LookUpForm c={c} />
      </>
    ),
  });
}

interface ReportsProps {
  readonly c: DashboardContext;
  readonly reports: Attempt<readonly ClientReport[]>;
}

function Reports({ c, reports }: ReportsProps) {
  if (reports.fault !== undefined) {
    return (
      <Notice kind="bad" role="alert">
        {reports.fault}
      </Notice>
    );
  }
  if (reports.value.length === 0) {
    return (
      <Empty title="No rule counts this client">
        <p>No rule has a key that these values select. Look it up by another value below.</p>
      </Empty>
    );
  }
  const now = Date.now();
  return (
    <div class="client-cards">
      {reports.value.map((report) => (
        <ClientCard c={c} report={report} now={now} />
      ))}
    </div>
  );
}

function LookUpForm({ c }: { c: DashboardContext }) {
  const names = alternativesOf(c.var.config);
  return (
    <section class="card">
      <h2>Look up a client</h2>
      <Form c={c} class="look-up" action="/_weir/clients">
        <ValueFields index={0} names={names} />
        <button type="submit" class="primary">
          Look up
        </button>
        <details class="wide">
          <summary>A key with several parts</summary>
          {Array.from({ length: VALUES - 1 }, (_, index) => (
            <ValueFields index={index + 1} names={names} />
          ))}
        </details>
      </Form>
      <p class="hint">
        The value is sent in the body of the request and hashed. Weir stores and logs only the hash.
      </p>
    </section>
  );
}

function ValueFields({ index, names }: { index: number; names: readonly string[] }) {
  return (
    <div class="pair">
      <label class="field">
        <span>Known value</span>
        <select name={`by${index}`}>
          {names.map((name) => (
            <option value={name}>{name}</option>
          ))}
          <option value="identity">identity (22 characters)</option>
        </select>
      </label>
      <TextField
        label="Value"
        name={`value${index}`}
        isWide
        required={index === 0}
        maxlength={8192}
        placeholder={index === 0 ? "such as 203.0.113.7" : undefined}
      />
    </div>
  );
}
