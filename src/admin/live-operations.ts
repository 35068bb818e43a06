import { waitUntil } from "cloudflare:workers";
import { CONTROL_BINDING, type DeploymentMode, type ResolvedBindings } from "../config/bindings.ts";
import type { CustomContext, Quota } from "../config/custom.ts";
import type { Fault } from "../config/faults.ts";
import { type KeyPart, MAX_KEY_LENGTH, parseAlternatives } from "../config/key.ts";
import type { LimitSource } from "../config/limit-source.ts";
import type { Match } from "../config/match.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { formatWindow } from "../config/window.ts";
import type { Actor, AuditEntry, ControlApi } from "../control/protocol.ts";
import { DescriptionError } from "../explain/described-request.ts";
import { explain } from "../explain/explain.ts";
import type { ExplainContext } from "../explain/explanation.ts";
import { limitSourceOf } from "../explain/limit-source.ts";
import type { ClientState } from "../limiter/clients.ts";
import { allWindowsOf } from "../limiter/counters.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { LiveOverrides } from "../overrides/live-overrides.ts";
import { type Override, overrideId } from "../overrides/override.ts";
import { type ClientLimits, sourcesIn, keysOf as valuesOfKey } from "../request/client-limits.ts";
import { IDENTITY_FORM, isIdentity, keyPartName } from "../request/identity.ts";
import { identifyLimitKey, type LimitKeyValue } from "../request/limit-key.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { StoreError } from "../stores/store.ts";
import { unknownRule } from "./admin-problem.ts";
import { callControl, VERIFY_BEFORE_RETRY } from "./control-client.ts";
import { invalidField, invalidInput } from "./input.ts";
import {
  type AdminOperations,
  type ClientReport,
  type ClientSelector,
  OperationError,
  type ReportedQuota,
  type RuleView,
} from "./operations.ts";

/** A client under one rule. */
interface SelectedClient {
  readonly rule: Rule;
  readonly identity: string;
  /** The names of the values by which the client was found; undefined for an identity. */
  readonly countedBy?: string;
  /** The values of the rule's key, if they are known. */
  readonly keys: readonly string[] | undefined;
}

/** The maximum number of values that an operator may name. */
const MAX_KNOWN = 16;
/** The maximum number of identities under one rule, if its key has several elements with alternatives. */
const MAX_IDENTITIES = 32;

/**
 * Returns the clients that a selector can mean. Under each rule, there is one client for each alternative of the key
 * with a known value. So an operator need not know which alternative has counted the client.
 *
 * @throws {OperationError} if no rule can count the client, or if a value is faulty. The messages contain no value
 */
async function selectClients(
  selector: ClientSelector,
  rules: readonly Rule[],
  config: Config,
  keySecret: string | undefined,
): Promise<SelectedClient[]> {
  if ("client" in selector) {
    const { client: identity } = selector;
    if (isIdentity(identity)) return rules.map((rule) => ({ rule, identity, keys: undefined }));
    throw invalidField("client", `must be ${IDENTITY_FORM}.`);
  }
  const known = readKnown(selector.known);
  const selected: SelectedClient[] = [];
  const faults = new Map<string, Fault>();
  for (const rule of rules) {
    for (const values of combinationsFor(rule, known)) {
      try {
        const key = values.map(([name, value]): LimitKeyValue => ({ [name]: value }));
        const client = await identifyLimitKey(rule, key, config, keySecret);
        const countedBy = values.map(([name]) => name).join(", ");
        const keys = valuesOfKey(rule.key, client.values);
        selected.push({ rule, identity: client.identity, countedBy, keys });
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        faults.set(error.message, { path: "known", code: "not-allowed", message: error.message });
      }
    }
  }
  if (selected.length > 0) return selected;
  if (faults.size > 0) throw invalidInput([...faults.values()]);
  throw invalidField("known", `must have values for the whole key of a rule: ${keysOf(rules)}.`);
}

/** @returns the values by the names of the parts of keys, such as `header:x-api-key` */
function readKnown(known: Readonly<Record<string, string>>): Map<string, string> {
  const entries = Object.entries(known);
  if (entries.length === 0) throw invalidField("known", "must have at least one value.");
  if (entries.length > MAX_KNOWN) {
    throw invalidField("known", `must have at most ${MAX_KNOWN} values.`, "too-many");
  }
  const values = new Map<string, string>();
  for (const [name, value] of entries) {
    const [part, ...others] = parseAlternatives(name) ?? [];
    // A misspelt name may be a value, so the message does not repeat the name.
    if (!part || others.length > 0) {
      throw invalidField(
        "known",
        'must have names as in a key, such as "ip" or "header:x-api-key".',
      );
    }
    if (value === "" || value.length > MAX_KEY_LENGTH) {
      throw invalidField("known", `must have texts of 1 to ${MAX_KEY_LENGTH} characters.`);
    }
    values.set(keyPartName(part), value);
  }
  return values;
}

const ADDRESS: KeyPart = { kind: "ip" };
/** The kinds of key that every request has. */
const ALWAYS_THERE: ReadonlySet<KeyPart["kind"]> = new Set([
  "ip",
  "host",
  "path",
  "method",
  "global",
]);

type NamedKnown = readonly [name: string, value: string];

/** Returns all combinations of one known alternative for each element of the rule's key. */
function combinationsFor(rule: Rule, known: ReadonlyMap<string, string>): NamedKnown[][] {
  let combinations: NamedKnown[][] = [[]];
  for (const alternatives of rule.key) {
    // If a request has no alternative, Weir counts it by its address.
    const isAlwaysThere = alternatives.some(({ kind }) => ALWAYS_THERE.has(kind));
    const names = new Set(
      (isAlwaysThere ? alternatives : [...alternatives, ADDRESS]).map(keyPartName),
    );
    const choices = [...names].flatMap((name): NamedKnown[] => {
      const value = name === "global" ? "global" : known.get(name);
      return value === undefined ? [] : [[name, value]];
    });
    combinations = combinations.flatMap((each) => choices.map((choice) => [...each, choice]));
    combinations = combinations.slice(0, MAX_IDENTITIES);
  }
  return combinations;
}

/** The maximum number of rules that a message lists. */
const MAX_LISTED = 20;

function keysOf(rules: readonly Rule[]): string {
  const listed = rules.slice(0, MAX_LISTED).map((rule) => `${rule.name} (${formatKey(rule)})`);
  return listed.join(", ") + (rules.length > MAX_LISTED ? ", …" : "");
}

/** Formats a key as in a configuration. Elements that identify a client together are joined by commas. */
function formatKey({ key }: Pick<Rule, "key">): string {
  return key.map((alternatives) => alternatives.map(keyPartName).join(" | ")).join(", ");
}

/** The overrides at this moment. */
interface CurrentOverrides {
  /** Applies the overrides to rules and clients. */
  readonly live: LiveOverrides;
  /** The overrides by their ids: see `overrideId`. Empty if the control object does not answer. */
  readonly byId: ReadonlyMap<string, Override>;
}

/**
 * Reads the overrides from the control object, so that operators see their last change at once.
 *
 * @param ownCopy this isolate's overrides, which apply if the control object does not answer
 */
async function currentOverrides(
  control: ControlApi | undefined,
  mode: DeploymentMode,
  ownCopy: LiveOverrides,
): Promise<CurrentOverrides> {
  const live = new LiveOverrides(mode);
  if (!control) return { live, byId: new Map() };
  try {
    const set = await callControl(control, (each) => each.overrides());
    live.update({ version: 1, all: set });
    return { live, byId: new Map(set.map((each) => [overrideId(each), each])) };
  } catch {
    return { live: ownCopy, byId: new Map() };
  }
}

/** Returns a client's state as operators see it. */
function reportOf(
  { rule, identity: client, countedBy }: SelectedClient,
  { quotas, tiers, banMs }: ClientState,
  { byId }: CurrentOverrides,
  limits: ClientLimits,
): ClientReport {
  const override = byId.get(overrideId({ rule: rule.name, client }));
  const ruleOverride = byId.get(overrideId({ rule: rule.name }));
  const windows = [rule.windows, ...(rule.tiers?.windows.values() ?? [])].flat();
  const answerOf = (source: LimitSource) => limits.answerOf(source, client);
  // Only a request has a token. For values that are not the rule's key, no function is asked, and the default holds.
  const isUnknown = (source: LimitSource) =>
    source.from.kind === "jwt" || (countedBy === undefined && answerOf(source) === undefined);
  const limitSource = limitSourceOf(windows, answerOf, isUnknown);
  const effect = override?.client === undefined ? undefined : override.effect;
  const isReplaced = (policy: string) =>
    effect?.kind === "limits" ? Object.hasOwn(effect.limits, policy) : effect?.kind === "blocked";
  const asReported = (all: readonly Quota[], declared: readonly Window[] = []) =>
    all.map((quota): ReportedQuota => {
      const own = declared.filter(({ policy }) => policy === quota.policy);
      const isOpen = sourcesIn(own).some(isUnknown) && !isReplaced(quota.policy);
      return isOpen ? { ...quota, isUnknown: true } : quota;
    });
  return {
    rule: rule.name,
    client,
    ...(countedBy !== undefined && { countedBy }),
    ...(limitSource !== undefined && { limitSource }),
    quotas: asReported(quotas, rule.windows),
    ...(tiers.size > 0 && {
      tiers: [...tiers].map(([tier, each]) => ({
        tier: rule.tiers?.labels.get(tier) ?? tier,
        quotas: asReported(each, rule.tiers?.windows.get(tier)),
      })),
    }),
    banMs,
    ...(override && { override }),
    ...(ruleOverride && { ruleOverride }),
  };
}

/** Returns the state of a client for the audit list. */
function auditStateOf({ quotas, banMs }: ClientReport) {
  return {
    quotas: quotas.map(({ policy, limit, remaining }) => ({ policy, limit, remaining })),
    banMs,
  };
}

/**
 * Calls the store.
 *
 * @throws {OperationError} ("unavailable") if the store fails
 */
async function callStore<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new OperationError(
      "unavailable",
      `The store failed: ${error.failure}, ${error.message}. Run npx weir doctor.`,
    );
  }
}

/** An operator's change to clients, other than an override. */
type ClientChange = "reset" | "lift-ban";

/** An entry of the audit list without a number. */
type NewEntry = Omit<AuditEntry, "id" | "at">;

interface ChangeOptions {
  readonly action: ClientChange;
  readonly by: Actor;
  readonly why: string;
  /** Makes the change in the store. */
  readonly make: (client: SelectedClient) => Promise<unknown>;
  /** Adds an entry to the audit list. */
  readonly record: (entry: NewEntry) => Promise<void>;
}

/** The reason in a second entry, which says that a change was not made. */
const NOT_MADE =
  "Not done: the control object did not confirm the entry about this change in time, so Weir did not make the change.";
const MAYBE_MADE = "Failed: the store did not answer, so this change may be missing.";

/**
 * Changes clients, each with an entry in the audit list. The entry is added first, so that nothing changes without an
 * entry. So the entry has only the state before the change. A failed change adds a second entry.
 *
 * @param before the state of each client
 * @throws {OperationError} if a change was not made, or if its result is unknown. All later clients are unchanged
 */
async function changeClients(
  clients: readonly SelectedClient[],
  before: readonly ClientReport[],
  { action, by, why, make, record }: ChangeOptions,
): Promise<void> {
  // The operator does not wait for this entry.
  const recordFailure = (entry: NewEntry) => waitUntil(record(entry).catch(() => {}));
  for (const [index, client] of clients.entries()) {
    const entry = { by, action, rule: client.rule.name, client: client.identity };
    const report = before[index];
    try {
      await record({ ...entry, ...(report && { before: auditStateOf(report) }), why });
    } catch {
      recordFailure({ ...entry, why: NOT_MADE });
      const kind = index === 0 ? "unavailable" : "uncertain";
      throw new OperationError(kind, notRecorded(index, clients.length));
    }
    try {
      await callStore(() => make(client));
    } catch (error) {
      recordFailure({ ...entry, why: MAYBE_MADE });
      if (!(error instanceof OperationError)) throw error;
      throw new OperationError("uncertain", `${error.message} ${VERIFY_BEFORE_RETRY}`);
    }
  }
}

function notRecorded(done: number, all: number): string {
  const made = done === 0 ? "nothing was changed" : `only ${done} of ${all} clients were changed`;
  return `The control object (binding ${CONTROL_BINDING}) did not answer, and without an entry in the audit list there is no change: ${made}. Try again.`;
}

/** The maximum number of items of a list in `match` that a view shows. */
const MAX_ITEMS = 10;

/**
 * Returns a rule as operators see it.
 *
 * @param active the rule in the deployment's mode and with its override; undefined if it is off
 * @param override the rule's override
 */
function ruleViewOf(
  rule: Rule,
  active: Rule | undefined,
  override: Override | undefined,
): RuleView {
  const { windows } = active ?? rule;
  return {
    name: rule.name,
    key: formatKey(rule),
    mode: active?.mode ?? "off",
    configuredMode: rule.mode,
    onError: rule.onError,
    limits: windows.map((window) => ({
      policy: window.policy,
      limit: window.limit,
      window: (window.sliding === undefined ? "" : "any ") + formatWindow(window),
      ...(window.from?.limit && {
        source: { from: keyPartName(window.from.limit.from), max: window.from.limit.max },
      }),
      ...(window.concurrent && { concurrent: true }),
    })),
    ...(rule.waitMs > 0 && { waitMs: rule.waitMs }),
    ...(rule.async && { async: true }),
    hasTiers: rule.tiers !== undefined,
    hasBan: rule.ban !== undefined,
    match: rule.for === "programs" ? "only calls of programs" : formatMatch(rule.match),
    ...(override && { override }),
  };
}

/**
 * Formats the methods, hosts and paths. Of the other conditions, shows only the names, because their values may be
 * secrets.
 */
function formatMatch({ methods, hosts, paths, ...others }: Match): string {
  const names = Object.entries(others).flatMap(([name, value]) =>
    value === undefined ? [] : name,
  );
  const places = [methods, hosts, paths].flatMap((list) => (list ? shortList(list) : []));
  const parts = [places.join(" "), names.length > 0 && `with ${names.join(", ")}`];
  return parts.filter(Boolean).join(" ") || "every request";
}

function shortList(items: Iterable<string>): string {
  const all = [...items];
  const rest = all.length - MAX_ITEMS;
  return all.slice(0, MAX_ITEMS).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

/** The parts of an isolate that the operations need. */
interface OperationsContext {
  readonly config: Config;
  readonly bindings: ResolvedBindings;
  readonly limiter: Limiter;
  /** Undefined if the Worker has no binding for the control object. */
  readonly control: ControlApi | undefined;
  /** This isolate's overrides. */
  readonly overrides: LiveOverrides;
  /** The numbers of clients that this isolate knows. */
  readonly limits: ClientLimits;
  /** The second argument of the functions in `custom`. */
  readonly custom: CustomContext;
}

/** Returns a client in the rule's own windows, with its numbers. Its override changes the windows of all tiers too. */
async function withOverride(
  client: SelectedClient,
  live: LiveOverrides,
  { limits, custom }: OperationsContext,
): Promise<AppliedRule> {
  const rule = live.activeRuleOf(client.rule) ?? client.rule;
  const { identity } = client;
  const changed = async (windows: readonly Window[]) => {
    const own = await limits.withNumbers({ rule, windows, identity }, client, custom);
    return live.clientOf(own) ?? own;
  };
  const own = await changed(rule.windows);
  if (!rule.tiers) return own;
  const windows = [...rule.tiers.windows].map(
    async ([tier, each]) => [tier, (await changed(each)).windows] as const,
  );
  const tiers = { ...rule.tiers, windows: new Map(await Promise.all(windows)) };
  return { ...own, rule: { ...rule, tiers } };
}

/** Reads and changes clients, with the current overrides. */
class ClientOperations {
  readonly #context: OperationsContext;

  constructor(context: OperationsContext) {
    this.#context = context;
  }

  overrides(): Promise<CurrentOverrides> {
    const { control, bindings, overrides } = this.#context;
    return currentOverrides(control, bindings.mode, overrides);
  }

  /** @param ruleName undefined for all rules */
  async select(selector: ClientSelector, ruleName: string | undefined): Promise<SelectedClient[]> {
    const { config, bindings } = this.#context;
    const rules = config.rules.filter(({ name }) => ruleName === undefined || name === ruleName);
    if (ruleName !== undefined && rules.length === 0) throw unknownRule(config);
    return selectClients(selector, rules, config, bindings.keySecret);
  }

  /** Returns a given identity unchanged, because a rule that was removed may have denied this client. */
  async identities(selector: ClientSelector, ruleName: string | undefined): Promise<string[]> {
    if ("client" in selector && isIdentity(selector.client)) return [selector.client];
    const selected = await this.select(selector, ruleName);
    return [...new Set(selected.map(({ identity }) => identity))];
  }

  async read(selected: readonly SelectedClient[], overrides: CurrentOverrides) {
    const { limiter, limits } = this.#context;
    const applied = await Promise.all(
      selected.map((client) => withOverride(client, overrides.live, this.#context)),
    );
    const states = await callStore(() => limiter.clients.read(applied));
    return states.map((state, index) => ({
      isActive: state.isActive,
      report: reportOf(selected[index] as SelectedClient, state, overrides, limits),
    }));
  }

  async change(
    action: ClientChange,
    ...[selector, ruleName, by, why]: Parameters<AdminOperations["reset"]>
  ): Promise<readonly ClientReport[]> {
    const { limiter, control } = this.#context;
    const selected = await this.select(selector, ruleName);
    const overrides = await this.overrides();
    const before = (await this.read(selected, overrides)).map(({ report }) => report);
    // Uses the configured windows, because an override may change the counters.
    const make = ({ rule, identity }: SelectedClient) => {
      const applied = { rule, windows: allWindowsOf(rule), identity };
      return action === "reset" ? limiter.clients.reset(applied) : limiter.clients.liftBan(applied);
    };
    // Without a control object, there is no audit list.
    const record = async (entry: NewEntry) => {
      if (control) await callControl(control, (object) => object.addAuditEntry(entry));
    };
    await changeClients(selected, before, { action, by, why, make, record });
    try {
      return (await this.read(selected, overrides)).map(({ report }) => report);
    } catch (error) {
      if (!(error instanceof OperationError)) throw error;
      throw new OperationError("uncertain", `The change was made, but then: ${error.message}`);
    }
  }
}

/** Creates the operations of operators, in a Worker. */
export function createOperations(context: OperationsContext): AdminOperations {
  const { config, bindings, limiter, control, custom } = context;
  const clients = new ClientOperations(context);
  return {
    async rules() {
      const { live, byId } = await clients.overrides();
      return config.rules.map((rule) => {
        const override = byId.get(overrideId({ rule: rule.name }));
        return ruleViewOf(rule, live.activeRuleOf(rule), override);
      });
    },
    statistics: (query) => callControl(control, (object) => object.statistics(query)),
    totals: () => callControl(control, (object) => object.totals()),
    async denials(query, selector) {
      const selected = selector && (await clients.identities(selector, query.rule));
      return callControl(control, (object) => object.denials({ ...query, clients: selected }));
    },
    async identify(selector, rule) {
      return (await clients.select(selector, rule)).map(({ identity }) => ({ client: identity }));
    },
    async peek(selector, rule) {
      const selected = await clients.select(selector, rule);
      const reports = await clients.read(selected, await clients.overrides());
      // The rules of an identity are unknown, so only rules that have counted it are of interest.
      const isNamed = rule !== undefined || "known" in selector;
      return reports
        .filter(({ isActive, report }) => isNamed || isActive || report.override)
        .map(({ report }) => report);
    },
    reset: (...change) => clients.change("reset", ...change),
    liftBan: (...change) => clients.change("lift-ban", ...change),
    overrides: () => callControl(control, (object) => object.overrides()),
    setOverride: (change, by) =>
      callControl(control, (object) => object.setOverride(change, by), "change"),
    removeOverride: (id, by, why) =>
      callControl(control, (object) => object.removeOverride(id, by, why), "change"),
    audit: (limit, before) => callControl(control, (object) => object.audit(limit, before)),
    async explain(request) {
      const explainContext: ExplainContext = {
        config,
        bindings,
        custom,
        read: (applied) => limiter.clients.read(applied),
        decide: (applied) => limiter.decide(applied, { checkOnly: true }),
      };
      try {
        return await explain(request, explainContext, await clients.overrides());
      } catch (error) {
        if (!(error instanceof DescriptionError)) throw error;
        const { field, message } = error;
        throw invalidField(field, message);
      }
    },
  };
}
