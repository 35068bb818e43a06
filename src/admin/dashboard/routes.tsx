import { Hono, type MiddlewareHandler } from "hono";
import type { AuditEntry } from "../../control/protocol.ts";
import { type AdminEnv, problemOf } from "../admin-problem.ts";
import { formatCount, formatEffect } from "../format.ts";
import { OperationError } from "../operations.ts";
import { assetResponse, loginStyleResponse } from "./assets.ts";
import { liftBan, removeOverride, resetClient, setOverride } from "./changes.tsx";
import { clientsPage, lookUpPage } from "./clients-page.tsx";
import { ClientLink, Empty, ExactTime, RuleLink, Table, Time, Unavailable } from "./components.tsx";
import type { DashboardContext } from "./context.ts";
import { explainedPage, explainPage } from "./explain-page.tsx";
import { faultPage } from "./fault-page.tsx";
import { attempt, mayChange, readFields } from "./forms.tsx";
import { page } from "./layout.tsx";
import { loginPage } from "./login-page.tsx";
import { RemoveForm } from "./overrides.tsx";
import { overviewPage } from "./overview-page.tsx";
import { keepTheme } from "./ranges.ts";
import { rulePage } from "./rule-page.tsx";
import { rulesPage } from "./rules-page.tsx";

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
async function auditPage(c: DashboardContext) {
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

/** The number of overrides on the page. There can be 10,000. */
const MAX_SHOWN = 500;

/** The page with all overrides that have not ended. */
async function overridesPage(c: DashboardContext) {
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
              {formatCount(all.length, "override")}
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
                    <bdi>{formatEffect(override.effect)}</bdi>
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

/**
 * Lets the runtime compress pages and assets for clients that accept gzip. The Workers runtime compresses a body
 * if the response has the header field Content-Encoding.
 */
const compressed: MiddlewareHandler = async (c, next) => {
  await next();
  if (c.res.body === null) return;
  c.header("Vary", "Accept-Encoding", { append: true });
  if (acceptsGzip(acceptedBy(c.req.raw))) c.header("Content-Encoding", "gzip");
};

/** Returns the field as the client has sent it. Cloudflare replaces it, and keeps the original value. */
function acceptedBy({ headers, cf }: Request): string {
  const original = (cf as { readonly clientAcceptEncoding?: unknown } | undefined)
    ?.clientAcceptEncoding;
  return typeof original === "string" ? original : (headers.get("accept-encoding") ?? "");
}

/** Whether a client prefers gzip to a body that is not compressed (RFC 9110, 12.5.3). */
function acceptsGzip(field: string): boolean {
  const weights = new Map<string, number>();
  for (const item of field.toLowerCase().split(",")) {
    const [coding = "", ...parameters] = item.split(";").map((part) => part.trim());
    const weight = parameters.find((each) => each.startsWith("q="))?.slice(2) ?? "1";
    weights.set(coding, Number(weight));
  }
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0;
  // A client that does not name identity accepts it, but prefers what it names.
  return gzip > 0 && gzip >= (weights.get("identity") ?? 0);
}

/** The pages of the dashboard and their assets, below `/_weir/`. */
export const dashboardRoutes = new Hono<AdminEnv>();

dashboardRoutes.onError((error, c) => {
  const isInvalid = error instanceof OperationError && error.kind === "invalid";
  return isInvalid ? faultPage(c, "Not possible", error.message, 400) : problemOf(error);
});
dashboardRoutes.use(compressed);
dashboardRoutes.get("/", overviewPage);
dashboardRoutes.get("/rules", rulesPage);
dashboardRoutes.get("/rules/:name", rulePage);
dashboardRoutes.get("/clients", clientsPage);
dashboardRoutes.post("/clients", lookUpPage);
dashboardRoutes.post("/clients/reset", resetClient);
dashboardRoutes.post("/clients/lift-ban", liftBan);
dashboardRoutes.get("/explain", explainPage);
dashboardRoutes.post("/explain", explainedPage);
dashboardRoutes.get("/overrides", overridesPage);
dashboardRoutes.post("/overrides", setOverride);
dashboardRoutes.post("/overrides/remove", removeOverride);
dashboardRoutes.get("/audit", auditPage);
dashboardRoutes.get("/assets/:name", assetResponse);
dashboardRoutes.get("/login", (c) => loginPage(c));
dashboardRoutes.get("/login/:name", loginStyleResponse);

dashboardRoutes.post("/theme", async (c) => {
  const fields = await readFields(c);
  keepTheme(c, fields.text("theme"));
  return c.redirect(ownPath(fields.text("back"), c.req.url), 303);
});

/** Returns a path of the dashboard; that of the overview for the addresses of other pages and sites. */
function ownPath(path: string, base: string): string {
  const { origin } = new URL(base);
  const url = URL.parse(path, origin);
  const isOwn = url?.origin === origin && url.pathname.startsWith("/_weir/");
  return isOwn ? url.pathname + url.search : "/_weir/";
}
