import type { ClientReport } from "../../src/admin/operations.ts";
import { formatDuration } from "../../src/config/duration.ts";
import type { Quota } from "../../src/config/quota.ts";
import { printable } from "../doctor/finding.ts";
import { AdminError, EXIT } from "./admin-error.ts";
import { type ConnectionOptions, connect } from "./connection.ts";
import type { Printed } from "./printed.ts";
import { findRule } from "./rules.ts";
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
  if (rule !== undefined) await findRule(api, rule);
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
  return { json, text: reportText(json.clients) };
}

/** Gives a client its quota back, or only lifts its ban. */
export async function reset({ rule, reason, banOnly, ...options }: ResetOptions): Promise<Printed> {
  const selector = await requireSelector(options);
  const api = await connect(options);
  await findRule(api, rule);
  const json = await api.call<Clients>("POST", banOnly ? "lift-ban" : "reset", "clients", {
    ...selector,
    rule,
    why: reason,
  });
  const done = banOnly
    ? "The ban is lifted. The counts are unchanged."
    : "The client has its whole quota again, and no ban.";
  return { json, text: `${done}\n\n${reportText(json.clients)}` };
}

function reportText(clients: readonly ClientReport[]): string {
  return clients.map(clientText).join("\n\n");
}

function clientText({ rule, client, countedBy, quotas, banMs, override }: ClientReport): string {
  const by = countedBy === undefined ? "" : `, counted by ${countedBy}`;
  const lines = [`${styled("bold", printable(rule))}  client ${printable(client)}${printable(by)}`];
  if (banMs > 0) lines.push(styled("red", `  banned for another ${duration(banMs)}`));
  if (override) {
    const { effect, expiresAt, reason, by: actor } = override;
    lines.push(
      `  override: ${printable(effectText(effect))}, until ${time(expiresAt)}, by ${printable(actor)}: ${printable(reason)}`,
    );
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
