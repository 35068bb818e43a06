import type { ClientSelector } from "../../src/admin/operations.ts";
import { durationUpTo } from "../../src/config/duration.ts";
import { type Override, overrideId } from "../../src/overrides/override.ts";
import { printable } from "../doctor/finding.ts";
import { AdminError, EXIT, wrongOptions } from "./admin-error.ts";
import { type Connection, type ConnectionOptions, connect } from "./connection.ts";
import { clientEffect, type EffectOptions, ruleEffect } from "./effect.ts";
import type { Clients } from "./peek.ts";
import type { Printed } from "./printed.ts";
import { findRule } from "./rules.ts";
import { readSelector, type SelectorOptions } from "./selector.ts";
import { duration, effectText, table, time } from "./text.ts";

export interface OverrideOptions extends ConnectionOptions, SelectorOptions, EffectOptions {
  readonly rule: string;
  readonly reason: string;
  readonly for?: string;
  readonly remove?: true;
}

/** Sets or removes an override. */
export async function override(options: OverrideOptions): Promise<Printed> {
  const { rule: name, reason, for: end, remove } = options;
  if (remove) return await removeOverride(options);
  const expiresIn = readExpiry(end);
  const selector = await readSelector(options);
  // This finds wrong options without a call.
  const all = selector ? undefined : ruleEffect(options);
  const api = await connect(options);
  const rule = await findRule(api, name);
  const effect = all ?? clientEffect(options, rule);
  const json = await api.call<Changed>("PUT", "overrides", "override", {
    rule: name,
    ...selector,
    effect,
    expiresIn,
    reason,
  });
  const set = (json.overrides ?? [json.override]).map(
    (each) => `Set: ${whoseText(each)}, until ${time(each.expiresAt)}.`,
  );
  return { json, text: [...set, SOON].map((line) => printable(line)).join("\n") };
}

/** The longest time until an override ends. */
const MAX_SECONDS = 365 * 86_400;

/** Returns the length of time as the API reads it. */
function readExpiry(given: string | undefined): string | number {
  if (given === undefined) {
    throw wrongOptions("An override always has an end. Add --for with a time, such as --for 2h.");
  }
  const expiresIn = /^\d{1,8}$/.test(given) ? Number(given) : given;
  if (durationUpTo(MAX_SECONDS, expiresIn) !== undefined) return expiresIn;
  throw wrongOptions(
    printable(
      `--for is "${given}". Allowed: a whole number of seconds, or a whole number and a unit, such as 90s, 30m, 2h or 7d, from 1 second to 365 days.`,
    ),
  );
}

/** The answer to a change. Values that an operator knows can identify several clients of one rule. */
interface Changed {
  readonly override: Override;
  readonly overrides?: readonly Override[];
}

const SOON = "This applies everywhere within 15 seconds.";

function whoseText({ rule, client, effect }: Override): string {
  return `${rule}, ${client === undefined ? "all clients" : `client ${client}`}: ${effectText(effect)}`;
}

async function removeOverride(options: OverrideOptions): Promise<Printed> {
  const { rule, reason, for: expiresIn, ...effects } = options;
  const given = (["limit", "limits", "factor", "unlimited", "block", "mode"] as const).some(
    (name) => effects[name] !== undefined,
  );
  if (given || expiresIn !== undefined) {
    throw wrongOptions("--remove takes only the rule, the client and --reason.");
  }
  const selector = await readSelector(options);
  const api = await connect(options);
  const clients = selector ? await identitiesOf(api, selector, rule) : [undefined];
  const overrides: Override[] = [];
  for (const client of clients) {
    try {
      const removed = await removeOne(api, rule, client, reason);
      if (removed !== undefined) overrides.push(removed);
    } catch (error) {
      if (!(error instanceof AdminError) || overrides.length === 0) throw error;
      throw new AdminError(
        EXIT.uncertain,
        [...removedLines(overrides), error.message].join("\n"),
        error.status,
      );
    }
  }
  if (overrides.length === 0) throw noOverride(rule, selector ? "this client" : "all clients");
  return {
    json: { override: overrides[0], overrides },
    text: [...removedLines(overrides), SOON].join("\n"),
  };
}

function removedLines(overrides: readonly Override[]): string[] {
  return overrides.map((each) => printable(`Removed: ${whoseText(each)}.`));
}

/** @returns the removed override; undefined if there is none */
async function removeOne(
  api: Connection,
  rule: string,
  client: string | undefined,
  why: string,
): Promise<Override | undefined> {
  const id = overrideId({ rule, ...(client !== undefined && { client }) });
  try {
    const { override } = await api.call<Changed>("DELETE", "overrides", "override", { id, why });
    return override;
  } catch (error) {
    if (error instanceof AdminError && error.status === 404) return undefined;
    throw error;
  }
}

function noOverride(rule: string, whom: string): AdminError {
  return new AdminError(
    EXIT.refused,
    printable(`${rule} has no override for ${whom}. weir overrides lists all overrides.`),
  );
}

/** Only the Worker can compute identities, because it may need the Worker's secret. */
async function identitiesOf(
  api: Connection,
  selector: ClientSelector,
  rule: string,
): Promise<string[]> {
  if ("client" in selector) return [selector.client];
  const { clients } = await api.call<Clients>("POST", "peek", "clients", { ...selector, rule });
  const found = clients.filter(({ override }) => override !== undefined);
  if (found.length > 0) return found.map(({ client }) => client);
  if (clients.length > 0) throw noOverride(rule, "this client");
  throw new AdminError(EXIT.refused, `The rule ${rule} does not count clients by these values.`);
}

/** Lists all overrides. */
export async function listOverrides(options: ConnectionOptions): Promise<Printed> {
  const api = await connect(options);
  const json = await api.call<{ overrides: readonly Override[] }>("GET", "overrides", "overrides");
  const { overrides } = json;
  if (overrides.length === 0) return { json, text: "There are no overrides." };
  const rows = overrides.map(({ rule, client, effect, expiresAt, by, reason }) => [
    rule,
    client ?? "(all clients)",
    effectText(effect),
    duration(expiresAt - Date.now()),
    by,
    reason,
  ]);
  return { json, text: table(["RULE", "CLIENT", "EFFECT", "ENDS IN", "BY", "REASON"], rows) };
}
