import type { ClientReport, RuleView } from "../../src/admin/operations.ts";
import { formatDuration } from "../../src/config/duration.ts";
import type { Quota } from "../../src/config/quota.ts";
import type { Override } from "../../src/overrides/override.ts";
import { printable } from "../doctor/finding.ts";
import { AdminError, EXIT } from "./admin-error.ts";
import { type ConnectionOptions, connect } from "./connection.ts";
import type { Printed } from "./printed.ts";
import { fetchRules, ruleNamed } from "./rules.ts";
import { requireSelector, type SelectorOptions } from "./selector.ts";
import { type Cell, duration, effectText, styled, table, time } from "./text.ts";

export interface PeekOptions extends ConnectionOptions, SelectorOptions {
  readonly rule?: string;
}

export interface ResetOptions extends PeekOptions {
  readonly rule: string;
  readonly reason: string;
  readonly banOnly?: true;
}

/** The answer of the API's calls about a client. */
export interface Clients {
  readonly clients: readonly ClientReport[];
}

/** Reads a client's quotas. */
export async function peek({ rule, ...options }: PeekOptions): Promise<Printed> {
  const selector = await requireSelector(options);
  const api = await connect(options);
  const rules = await fetchRules(api);
  if (rule !== undefined) ruleNamed(rules, rule);
  const json = await api.call<Clients>("POST", "peek", "clients", {
    ...selector,
    ...(rule !== undefined && { rule }),
  });
  if (json.clients.length === 0) {
    throw new AdminError(
      EXIT.refused,
      "No rule counts clients by these values. The name before = must be an alternative of a rule's key; weir check prints the keys.",
    );
  }
  return { json, text: reportText(json.clients, rules) };
}

/** Gives a client its quota back, or only lifts its ban. */
export async function reset({ rule, reason, banOnly, ...options }: ResetOptions): Promise<Printed> {
  const selector = await requireSelector(options);
  const api = await connect(options);
  const rules = await fetchRules(api);
  const { hasBan } = ruleNamed(rules, rule);
  const json = await api.call<Clients>("POST", banOnly ? "lift-ban" : "reset", "clients", {
    ...selector,
    rule,
    why: reason,
  });
  const done = banOnly ? liftText(hasBan) : resetText(json.clients);
  return { json, text: `${done}\n\n${reportText(json.clients, rules)}` };
}

function liftText(hasBan: boolean): string {
  return hasBan
    ? "The ban is lifted. The counts are unchanged."
    : "The rule has no bans, so there is none to lift. The counts are unchanged.";
}

function resetText(clients: readonly ClientReport[]): string {
  // An override can block the client, or set a limit to 0.
  const hasNone = clients.some(({ quotas }) => quotas.some(({ limit }) => limit === 0));
  return hasNone
    ? "The counts are removed, and there is no ban. But a limit is 0, so the client has no quota."
    : "The client has its whole quota again, and no ban.";
}

function reportText(clients: readonly ClientReport[], rules: readonly RuleView[]): string {
  const overrides = new Map(rules.map(({ name, override }) => [name, override]));
  return clients.map((each) => clientText(each, overrides.get(each.rule))).join("\n\n");
}

/** @param ruleOverride the override of all clients of the rule */
function clientText(report: ClientReport, ruleOverride: Override | undefined): string {
  const { rule, client, countedBy, quotas, banMs, override } = report;
  const by = countedBy === undefined ? "" : `, counted by ${countedBy}`;
  const lines = [`${styled("bold", printable(rule))}  client ${printable(client)}${printable(by)}`];
  if (banMs > 0) lines.push(styled("red", `  banned for another ${duration(banMs)}`));
  if (override) lines.push(overrideLine("override", override));
  if (ruleOverride) {
    const isReplaced = override !== undefined && "factor" in ruleOverride.effect;
    const name = isReplaced
      ? "override of the rule, whose factor does not apply to this client"
      : "override of the rule";
    lines.push(overrideLine(name, ruleOverride));
  }
  if (quotas.length > 0) {
    lines.push(
      indent(table(["POLICY", "LIMIT", "LEFT", "WINDOW", "NEW WINDOW IN"], quotas.map(row))),
    );
  } else if (override === undefined) {
    lines.push("  no quota of this client is counted");
  }
  return lines.join("\n");
}

function overrideLine(name: string, { effect, expiresAt, reason, by }: Override): string {
  return `  ${name}: ${printable(effectText(effect))}, until ${time(expiresAt)}, by ${printable(by)}: ${printable(reason)}`;
}

function row({ policy, limit, remaining, windowMs, calendar, resetMs }: Quota): Cell[] {
  const window = calendar ?? formatDuration(Math.round(windowMs / 1000));
  return [
    policy,
    limit,
    { text: remaining, style: remaining === 0 ? "red" : "green" },
    window,
    duration(resetMs),
  ];
}

function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}
