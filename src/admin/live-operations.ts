import type { DeploymentMode } from "../config/deployment-mode.ts";
import type { Config } from "../config/schema.ts";
import type {
  Actor,
  AuditEntry,
  ChangeResult,
  ControlApi,
  OverrideChange,
  StatisticsQuery,
  StatisticsReport,
  Totals,
} from "../control/protocol.ts";
import type { Limiter } from "../limiter/limiter.ts";
import type { Override } from "../overrides/override.ts";
import {
  type AdminOperations,
  type ClientReport,
  type Explanation,
  OperationError,
  type RuleView,
} from "./operations.ts";

/** What the operations need of an isolate. */
export interface OperationsContext {
  readonly config: Config;
  readonly limiter: Limiter;
  readonly mode: DeploymentMode;
  /** The secret with which identities are hashed; undefined if it is not set. */
  readonly keySecret: string | undefined;
  /** Undefined if the Worker has no binding for the control object. */
  readonly control: ControlApi | undefined;
}

/** The operations of operators, in a Worker. */
export class LiveOperations implements AdminOperations {
  readonly #context: OperationsContext;

  constructor(context: OperationsContext) {
    this.#context = context;
  }

  async rules(): Promise<readonly RuleView[]> {
    return [];
  }

  statistics(query: StatisticsQuery): Promise<StatisticsReport> {
    return this.#control().statistics(query);
  }

  totals(): Promise<Totals> {
    return this.#control().totals();
  }

  async peek(): Promise<readonly ClientReport[]> {
    return [];
  }

  async reset(): Promise<readonly ClientReport[]> {
    return [];
  }

  async liftBan(): Promise<readonly ClientReport[]> {
    return [];
  }

  overrides(): Promise<readonly Override[]> {
    return this.#control().overrides();
  }

  setOverride(change: OverrideChange, by: Actor): Promise<ChangeResult> {
    return this.#control().setOverride(change, by);
  }

  removeOverride(id: string, by: Actor, why: string): Promise<Override | undefined> {
    return this.#control().removeOverride(id, by, why);
  }

  audit(limit: number, before?: number): Promise<readonly AuditEntry[]> {
    return this.#control().audit(limit, before);
  }

  async explain(): Promise<Explanation> {
    return { outcome: "unmatched", rules: [] };
  }

  #control(): ControlApi {
    const { control } = this.#context;
    if (control) return control;
    throw new OperationError("unavailable", "The Worker has no binding WEIR_CONTROL.");
  }
}
