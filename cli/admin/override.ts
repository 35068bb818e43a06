import { formatDuration, formatEffect, formatTime } from "../../src/admin/format.ts";
import type { ClientSelector, RuleView } from "../../src/admin/operations.ts";
import { durationUpTo } from "../../src/config/duration.ts";
import {
  type ClientEffect,
  type Override,
  overrideId,
  type RuleEffect,
} from "../../src/overrides/override.ts";
import { CommandFailure } from "../command-failure.ts";
import { printable, table } from "../print/text.ts";
import {
  type Connection,
  type ConnectionOptions,
  connect,
  EXIT,
  type Printed,
  wrongOptions,
} from "./connection.ts";
import { type ClientsAnswer, findRule, readSelector, type SelectorOptions } from "./selector.ts";

interface EffectOptions {
  readonly limit?: number;
  readonly limits?: string;
  readonly factor?: number;
  readonly unlimited?: true;
  readonly block?: true;
  readonly mode?: "enforce" | "shadow" | "off";
}

/**
 * Reads the effect of an override for one client.
 *
 * @param rule has the names of the policies
 * @throws {CommandFailure} unless the options name exactly one effect
 */
function clientEffect(options: EffectOptions, rule: RuleView): ClientEffect {
  const { limit, limits, factor, unlimited, block, mode } = options;
  if (mode !== undefined) {
    throw wrongOptions(
      "--mode changes a rule for all its clients. For one client, use --unlimited or --block.",
    );
  }
  const effects: ClientEffect[] = [];
  if (limit !== undefined) effects.push({ kind: "limits", limits: onlyLimit(limit, rule) });
  if (limits !== undefined) effects.push({ kind: "limits", limits: readLimits(limits, rule) });
  if (factor !== undefined) effects.push({ kind: "factor", factor });
  if (unlimited) effects.push({ kind: "unlimited" });
  if (block) effects.push({ kind: "blocked" });
  const [effect, ...others] = effects;
  if (effect && others.length === 0) return effect;
  throw wrongOptions(
    "Name exactly one of --limit, --limits, --factor, --unlimited and --block; or --remove.",
  );
}

/**
 * Reads the effect of an override for all clients of a rule.
 *
 * @throws {CommandFailure} if an option is only for one client, or if no option is given
 */
function ruleEffect({ mode, factor, ...others }: EffectOptions): RuleEffect {
  const [wrong] = (["limit", "limits", "unlimited", "block"] as const).filter(
    (name) => others[name] !== undefined,
  );
  if (wrong !== undefined) {
    throw wrongOptions(
      `--${wrong} needs a client, such as --ip 203.0.113.7. For all clients of the rule, use --factor or --mode.`,
    );
  }
  if (mode === undefined && factor === undefined) {
    throw wrongOptions(
      "Name what to change: --mode or --factor for all clients of the rule; for one client, --ip, --known or --client with --limit, --limits, --factor, --unlimited or --block; or --remove.",
    );
  }
  return { ...(mode !== undefined && { mode }), ...(factor !== undefined && { factor }) };
}

function onlyLimit(limit: number, { name, limits }: RuleView): Record<string, number> {
  const [only, ...others] = limits;
  if (only && others.length === 0) return { [only.policy]: limit };
  throw wrongOptions(
    `The rule ${name} has ${limits.length} limits. Name each one that you change: --limits ${limits.map(({ policy }) => `${policy}=${limit}`).join(",")}`,
  );
}

/** Reads `search/1m=500,search/1h=9000`. The part before the slash may be left out. */
function readLimits(text: string, { name, limits }: RuleView): Record<string, number> {
  const read: Record<string, number> = {};
  for (const part of text.split(",")) {
    const [, given = "", digits] = /^\s*([^=]+?)\s*=\s*(\d{1,15})\s*$/.exec(part) ?? [];
    const found = limits.find(({ policy }) => policy === given || policy === `${name}/${given}`);
    if (digits === undefined || !found) {
      throw wrongOptions(
        `--limits has "${part.trim()}". Allowed: a policy and a whole number, such as ${limits.map(({ policy, limit }) => `${policy}=${limit}`).join(",")}`,
      );
    }
    read[found.policy] = Number(digits);
  }
  return read;
}

export interface OverrideOptions extends ConnectionOptions, SelectorOptions, EffectOptions {
  readonly rule: string;
  readonly reason: string;
  readonly for?: string;
  readonly remove?: true;
}

export async function override(options: OverrideOptions): Promise<Printed> {
  const { rule: name, reason, for: end, remove } = options;
  if (remove) return await removeOverride(options);
  const expiresIn = readExpiry(end);
  const selector = await readSelector(options);
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
    (each) => `Set: ${whoseText(each)}, until ${formatTime(each.expiresAt)}.`,
  );
  return { json, text: [...set, SOON].map((line) => printable(line)).join("\n") };
}

/** The longest time until an override ends. */
const MAX_SECONDS = 365 * 86_400;

/** Checks the value of `--for`. Returns a number of seconds or a text such as `2h`: the API accepts both. */
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

/** The answer to a change. If an operator's values fit several clients of a rule, each gets an override. */
interface Changed {
  readonly override: Override;
  readonly overrides?: readonly Override[];
}

const SOON = "This usually applies everywhere within 15 seconds.";

function whoseText({ rule, client, effect }: Override): string {
  return `${rule}, ${client === undefined ? "all clients" : `client ${client}`}: ${formatEffect(effect)}`;
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
      const id = overrideId({ rule, ...(client !== undefined && { client }) });
      const body = { id, why: reason };
      const { override } = await api.call<Changed>("DELETE", "overrides", "override", body);
      overrides.push(override);
    } catch (error) {
      if (!(error instanceof CommandFailure) || overrides.length === 0) throw error;
      throw new CommandFailure(
        EXIT.uncertain,
        [...removedLines(overrides), error.message].join("\n"),
      );
    }
  }
  return {
    json: { override: overrides[0], overrides },
    text: [...removedLines(overrides), SOON].join("\n"),
  };
}

function removedLines(overrides: readonly Override[]): string[] {
  return overrides.map((each) => printable(`Removed: ${whoseText(each)}.`));
}

/** Only the Worker can compute identities, because an identity's hash may need the Worker's secret. */
async function identitiesOf(
  api: Connection,
  selector: ClientSelector,
  rule: string,
): Promise<string[]> {
  if ("client" in selector) return [selector.client];
  const { clients } = await api.call<ClientsAnswer>("POST", "peek", "clients", {
    ...selector,
    rule,
  });
  const found = clients.filter(({ override }) => override !== undefined);
  if (found.length > 0) return found.map(({ client }) => client);
  throw wrongOptions(
    clients.length > 0
      ? `The rule ${rule} has no override for this client.`
      : `The rule ${rule} does not count clients by these values.`,
  );
}

export async function listOverrides(options: ConnectionOptions): Promise<Printed> {
  const api = await connect(options);
  const json = await api.call<{ overrides: readonly Override[] }>("GET", "overrides", "overrides");
  const { overrides } = json;
  if (overrides.length === 0) return { json, text: "There are no overrides." };
  const rows = overrides.map(({ rule, client, effect, expiresAt, by, reason }) => [
    rule,
    client ?? "(all clients)",
    formatEffect(effect),
    formatDuration(expiresAt - Date.now()),
    by,
    reason,
  ]);
  return { json, text: table(["RULE", "CLIENT", "EFFECT", "ENDS IN", "BY", "REASON"], rows) };
}
