import type { ResolvedBindings } from "../config/bindings.ts";
import type { CustomContext } from "../config/custom-functions.ts";
import { rulesInMode } from "../config/deployment-mode.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { Actor, ControlApi, OverrideChange, StatisticsQuery } from "../control/protocol.ts";
import { DescriptionError } from "../explain/described-request.ts";
import { explain } from "../explain/explain.ts";
import type { ExplainContext } from "../explain/explain-context.ts";
import type { DescribedRequest, Explanation } from "../explain/explanation.ts";
import type { Limiter } from "../limiter/limiter.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import { overrideId } from "../overrides/override.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { type ClientChange, changeClients, type NewEntry } from "./change-clients.ts";
import { callStore, reportOf } from "./client-report.ts";
import { type SelectedClient, selectClients } from "./client-selector.ts";
import { callControl } from "./control-calls.ts";
import { type CurrentOverrides, currentOverrides } from "./current-overrides.ts";
import {
  type AdminOperations,
  type ClientReport,
  type ClientSelector,
  OperationError,
  type RuleView,
} from "./operations.ts";
import { ruleViewOf } from "./rule-view.ts";
import { unknownRule } from "./unknown-rule.ts";

/** What the operations need of an isolate. */
export interface OperationsContext {
  readonly config: Config;
  readonly bindings: ResolvedBindings;
  readonly limiter: Limiter;
  /** Undefined if the Worker has no binding for the control object. */
  readonly control: ControlApi | undefined;
  /** The overrides that this isolate has; undefined without a control object. */
  readonly overrides: LiveOverrides | undefined;
  /** The second argument of the functions in `custom`. */
  readonly custom: CustomContext;
}

/** The operations of operators, in a Worker. */
export class LiveOperations implements AdminOperations {
  readonly #context: OperationsContext;

  constructor(context: OperationsContext) {
    this.#context = context;
  }

  async rules(): Promise<readonly RuleView[]> {
    const { config, bindings } = this.#context;
    const { live, byId } = await this.#overrides();
    return config.rules.map((rule) =>
      ruleViewOf(rule, live.ruleOf(rule), bindings.mode, byId.get(overrideId({ rule: rule.name }))),
    );
  }

  statistics(query: StatisticsQuery) {
    return this.#call((control) => control.statistics(query));
  }

  totals() {
    return this.#call((control) => control.totals());
  }

  async identify(selector: ClientSelector, rule: string) {
    const selected = await this.#select(selector, rule);
    return selected.map(({ identity }) => ({ client: identity }));
  }

  async peek(selector: ClientSelector, rule?: string): Promise<readonly ClientReport[]> {
    const selected = await this.#select(selector, rule);
    const overrides = await this.#overrides();
    const reports = await this.#read(selected, overrides);
    // The rules of an identity are not known, so only those that have counted it are of interest.
    const isNamed = rule !== undefined || "known" in selector;
    return reports
      .filter(({ isActive, report }) => isNamed || isActive || report.override)
      .map(({ report }) => report);
  }

  reset(selector: ClientSelector, rule: string, by: Actor, why: string) {
    return this.#change("reset", selector, rule, by, why);
  }

  liftBan(selector: ClientSelector, rule: string, by: Actor, why: string) {
    return this.#change("lift-ban", selector, rule, by, why);
  }

  overrides() {
    return this.#call((control) => control.overrides());
  }

  setOverride(change: OverrideChange, by: Actor) {
    return this.#call((control) => control.setOverride(change, by), "change");
  }

  removeOverride(id: string, by: Actor, why: string) {
    return this.#call((control) => control.removeOverride(id, by, why), "change");
  }

  audit(limit: number, before?: number) {
    return this.#call((control) => control.audit(limit, before));
  }

  async explain(request: DescribedRequest): Promise<Explanation> {
    const { config, bindings, limiter, custom } = this.#context;
    const context: ExplainContext = {
      config,
      bindings,
      custom,
      read: (applied) => limiter.clients.read(applied),
      decide: (applied) => limiter.decide(applied, { checkOnly: true }),
    };
    try {
      return await explain(request, context, await this.#overrides());
    } catch (error) {
      if (!(error instanceof DescriptionError)) throw error;
      const { field, message } = error;
      throw new OperationError("invalid", `${field} ${message}`, [{ path: field, message }]);
    }
  }

  async #change(
    action: ClientChange,
    selector: ClientSelector,
    ruleName: string,
    by: Actor,
    why: string,
  ): Promise<readonly ClientReport[]> {
    const { limiter } = this.#context;
    const selected = await this.#select(selector, ruleName);
    const overrides = await this.#overrides();
    const before = await this.#read(selected, overrides);
    // Overrides change the windows, and so perhaps the counters.
    const make = ({ rule, identity }: SelectedClient) => {
      const applied = { rule, windows: allWindowsOf(rule), identity };
      return action === "reset" ? limiter.clients.reset(applied) : limiter.clients.liftBan(applied);
    };
    const record = (entry: NewEntry) => this.#record(entry);
    const reports = before.map(({ report }) => report);
    await changeClients(selected, reports, { action, by, why, make, record });
    try {
      return (await this.#read(selected, overrides)).map(({ report }) => report);
    } catch (error) {
      if (!(error instanceof OperationError)) throw error;
      throw new OperationError("uncertain", `The change was made, but then: ${error.message}`);
    }
  }

  /** Adds an entry to the audit list, if there is one. */
  async #record(entry: NewEntry): Promise<void> {
    if (this.#context.control) await this.#call((control) => control.addAuditEntry(entry));
  }

  async #select(selector: ClientSelector, ruleName: string | undefined): Promise<SelectedClient[]> {
    const { config, bindings } = this.#context;
    const rules = config.rules.filter(({ name }) => ruleName === undefined || name === ruleName);
    if (ruleName !== undefined && rules.length === 0) {
      throw unknownRule(ruleName, config);
    }
    return selectClients(selector, rules, config, bindings.keySecret);
  }

  /** Reads the states of clients, with all overrides. */
  async #read(selected: readonly SelectedClient[], overrides: CurrentOverrides) {
    const { limiter, bindings } = this.#context;
    const applied = selected.map(({ rule, identity }): AppliedRule => {
      const [inMode = rule] = rulesInMode([rule], bindings.mode);
      const changed = overrides.live.ruleOf(inMode) ?? inMode;
      const own = { rule: changed, windows: changed.windows, identity };
      return overrides.live.clientsOf([own])[0] ?? own;
    });
    const states = await callStore(() => limiter.clients.read(applied));
    return states.map((state, index) => ({
      isActive: state.isActive,
      report: reportOf(selected[index] as SelectedClient, state, overrides),
    }));
  }

  #overrides(): Promise<CurrentOverrides> {
    const { control, bindings, overrides } = this.#context;
    return currentOverrides(control, bindings.mode, overrides);
  }

  #call<Result>(call: (control: ControlApi) => Promise<Result>, kind?: "change"): Promise<Result> {
    return callControl(this.#context.control, call, kind);
  }
}

/** Returns the windows of a rule and of all its tiers. */
function allWindowsOf({ windows, tiers }: Rule): Window[] {
  return [...windows, ...[...(tiers?.windows.values() ?? [])].flat()];
}
