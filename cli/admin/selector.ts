import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { formatCount, formatDuration, formatEffect, formatTime } from "../../src/admin/format.ts";
import type {
  ClientReport,
  ClientSelector,
  ReportedQuota,
  RuleView,
} from "../../src/admin/operations.ts";
import { parseAddress } from "../../src/config/address.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { formatWindow } from "../../src/config/window.ts";
import type { StoredDenials } from "../../src/control/protocol.ts";
import type { Override } from "../../src/overrides/override.ts";
import { IDENTITY_FORM, isIdentity } from "../../src/request/identity.ts";
import { CommandFailure } from "../command-failure.ts";
import { type Cell, printable, styled, table } from "../print/text.ts";
import {
  type Connection,
  type ConnectionOptions,
  connect,
  EXIT,
  type Printed,
  wrongOptions,
} from "./connection.ts";
import { type DenialsAnswer, denialTable, fetchDenials } from "./denial-table.ts";

/** The options that name a client. */
export interface SelectorOptions {
  readonly ip?: string;
  readonly known?: readonly string[];
  readonly client?: string;
}

/**
 * Reads the options that name a client. Clients' values are sent only in the body of a request, and are never
 * printed.
 *
 * @returns undefined if the options name no client
 * @throws {CommandFailure} if the options contradict each other
 */
export async function readSelector(options: SelectorOptions): Promise<ClientSelector | undefined> {
  const { known = [], client } = options;
  const ip = options.ip?.trim();
  if (client !== undefined) {
    if (ip !== undefined || known.length > 0) {
      throw wrongOptions("--client is already complete. Leave out --ip and --known.");
    }
    if (!isIdentity(client)) {
      throw wrongOptions(
        `--client must be ${IDENTITY_FORM}. For an address, use --ip, and for a key --known.`,
      );
    }
    return { client };
  }
  const values: Record<string, string> = ip === undefined ? {} : { ip };
  const hidden: string[] = [];
  for (const each of known) {
    const at = each.indexOf("=");
    const [name, value] = [each.slice(0, at), each.slice(at + 1)];
    if (at < 1 || value === "") {
      throw wrongOptions(
        "--known needs a name and a value, such as header:x-api-key=abc. To read the value from standard input, write header:x-api-key=-",
      );
    }
    if (Object.hasOwn(values, name)) throw wrongOptions(`${name} is given twice.`);
    values[name] = value;
    if (value === "-") hidden.push(name);
  }
  if (ip !== undefined && !parseAddress(ip)) throw wrongIp();
  if (hidden.length > 0) Object.assign(values, await readHidden(hidden));
  return Object.keys(values).length === 0 ? undefined : { known: values };
}

/** The message leaves out the value, which may be an API key that was given as an address by mistake. */
export function wrongIp(): CommandFailure {
  return wrongOptions(
    "--ip is not an IP address. Allowed: an address without a port and without a prefix length, such as 203.0.113.7 or 2001:db8::7.",
  );
}

/** @throws {CommandFailure} if the options name no client */
async function requireSelector(options: SelectorOptions): Promise<ClientSelector> {
  const selector = await readSelector(options);
  if (selector) return selector;
  throw wrongOptions(
    "Name the client: --ip 203.0.113.7, --known header:x-api-key=- (reads the key from standard input), or --client with an identity from weir top.",
  );
}

/** Reads a line of standard input for each name, so that no API key gets into the shell's history. */
async function readHidden(names: readonly string[]): Promise<Record<string, string>> {
  const lines = process.stdin.isTTY
    ? await askHidden(names)
    : (await text(process.stdin)).split(/\r?\n/);
  return Object.fromEntries(
    names.map((name, index) => {
      const value = lines[index]?.trim();
      if (!value) throw wrongOptions(`Standard input has no line with the value of ${name}.`);
      return [name, value];
    }),
  );
}

/** Asks at the terminal, and hides the operator's input. */
async function askHidden(names: readonly string[]): Promise<string[]> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines: string[] = [];
  for (const name of names) {
    process.stderr.write(`${name} (is not shown): `);
    const prompt = createInterface({ input: process.stdin, output: silent, terminal: true });
    lines.push(await prompt.question(""));
    prompt.close();
    process.stderr.write("\n");
  }
  return lines;
}

/**
 * Finds a rule of the Worker by its name.
 *
 * @throws {CommandFailure} if there is no such rule, with a similar name or with all names
 */
export async function findRule(api: Connection, name: string): Promise<RuleView> {
  return ruleNamed(await fetchRules(api), name);
}

async function fetchRules(api: Connection): Promise<readonly RuleView[]> {
  const { rules } = await api.call<{ rules: readonly RuleView[] }>("GET", "rules", "rules");
  return rules;
}

/** @throws {CommandFailure} if there is no such rule, with a similar name or with all names */
function ruleNamed(rules: readonly RuleView[], name: string): RuleView {
  const found = rules.find((each) => each.name === name);
  if (found) return found;
  const names = rules.map((each) => each.name);
  const nearest = nearestName(name, names);
  const cure = nearest === undefined ? `It has: ${names.join(", ")}.` : `Did you mean ${nearest}?`;
  throw new CommandFailure(EXIT.refused, printable(`The Worker has no rule ${name}. ${cure}`));
}

export interface PeekOptions extends ConnectionOptions, SelectorOptions {
  readonly rule?: string;
}

export interface ResetOptions extends PeekOptions {
  readonly rule: string;
  readonly reason: string;
  readonly banOnly?: true;
}

/** The answer of the API's calls about a client. */
export interface ClientsAnswer {
  readonly clients: readonly ClientReport[];
}

export async function peek({ rule, ...options }: PeekOptions): Promise<Printed> {
  const selector = await requireSelector(options);
  const api = await connect(options);
  const rules = await fetchRules(api);
  if (rule !== undefined) ruleNamed(rules, rule);
  const json = await api.call<ClientsAnswer>("POST", "peek", "clients", {
    ...selector,
    ...(rule !== undefined && { rule }),
  });
  if (json.clients.length === 0) {
    throw new CommandFailure(
      EXIT.refused,
      "No rule counts clients by these values. The name before = must be an alternative of a rule's key; weir check prints the keys.",
    );
  }
  const { denials } = await latestDenials(api, selector, rule);
  const text = reportText(json.clients, rules, denials);
  return { json: { ...json, ...(denials.length > 0 && { denials }) }, text };
}

/** Returns none if there is no control object, or if the Worker has an older version. */
async function latestDenials(
  api: Connection,
  selector: ClientSelector,
  rule: string | undefined,
): Promise<DenialsAnswer> {
  const query = new URLSearchParams({ limit: "1000", ...(rule !== undefined && { rule }) });
  return await fetchDenials(api, query, selector).catch(() => ({ denials: [] }));
}

/** Gives a client its quota back, or only lifts its ban. */
export async function reset({ rule, reason, banOnly, ...options }: ResetOptions): Promise<Printed> {
  const selector = await requireSelector(options);
  const api = await connect(options);
  const rules = await fetchRules(api);
  ruleNamed(rules, rule);
  const json = await api.call<ClientsAnswer>("POST", banOnly ? "lift-ban" : "reset", "clients", {
    ...selector,
    rule,
    why: reason,
  });
  const done = banOnly
    ? "There is no ban now. The counts are unchanged."
    : "The counts are removed, and there is no ban.";
  const caveat = "Other isolates may repeat an earlier denial for up to ten seconds.";
  return { json, text: `${done} ${caveat}\n\n${reportText(json.clients, rules)}` };
}

/** The maximum number of denials that are shown below the quotas of a client. */
const SHOWN_DENIALS = 5;

/** @param denials of all clients, the newest first */
function reportText(
  clients: readonly ClientReport[],
  rules: readonly RuleView[],
  denials: readonly StoredDenials[] = [],
): string {
  const overrides = new Map(rules.map(({ name, override }) => [name, override]));
  const texts = clients.map((each) => {
    const own = denials.filter(({ rule, client }) => rule === each.rule && client === each.client);
    const last = own.length > 0 ? `\n${indent(denialTable(own.slice(0, SHOWN_DENIALS)))}` : "";
    return clientText(each, overrides.get(each.rule)) + last;
  });
  return texts.join("\n\n");
}

/** @param ruleOverride the override for all clients of the rule */
function clientText(report: ClientReport, ruleOverride: Override | undefined): string {
  const { rule, client, countedBy, limitSource, quotas, banMs, override } = report;
  const by = countedBy === undefined ? "" : `, counted by ${countedBy}`;
  const lines = [`${styled("bold", printable(rule))}  client ${printable(client)}${printable(by)}`];
  if (banMs > 0) lines.push(styled("red", `  banned for another ${formatDuration(banMs)}`));
  if (limitSource !== undefined) lines.push(`  own limit: ${printable(limitSource)}`);
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
      indent(table(["POLICY", "LIMIT", "LEFT", "WINDOW", "MORE IN", "OPEN NOW"], quotas.map(row))),
    );
  } else if (override === undefined) {
    lines.push("  no quota of this client is counted");
  }
  return lines.join("\n");
}

function overrideLine(name: string, { effect, expiresAt, reason, by }: Override): string {
  return `  ${name}: ${printable(formatEffect(effect))}, until ${formatTime(expiresAt)}, by ${printable(by)}: ${printable(reason)}`;
}

function row({
  policy,
  limit,
  remaining,
  windowMs,
  calendar,
  concurrent,
  sliding,
  resetMs,
  isUnknown,
}: ReportedQuota): Cell[] {
  const style = remaining === 0 ? "red" : "green";
  const first = isUnknown
    ? [policy, "?", "?"]
    : [policy, limit, { text: remaining, style } as const];
  if (concurrent) {
    const open = isUnknown ? "" : ({ text: openText(limit - remaining, limit), style } as const);
    return [...first, "", "", open];
  }
  const window = calendar ?? formatWindow({ windowMs: 1000 * Math.round(windowMs / 1000) });
  const isFull = sliding !== undefined && remaining === limit;
  const more = isFull || isUnknown ? "" : formatDuration(resetMs);
  return [...first, sliding ? `any ${window}` : window, more, ""];
}

const BAR_WIDTH = 20;

/** Returns a number of open requests beside its maximum, and a bar. Any number above 0 is visible. */
function openText(open: number, limit: number): string {
  const length = Math.ceil((open / limit) * BAR_WIDTH);
  return `${"█".repeat(length).padEnd(BAR_WIDTH, "░")} ${formatCount(open)} / ${formatCount(limit)}`;
}

function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}
