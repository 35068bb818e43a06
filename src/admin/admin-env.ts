import type { Config } from "../config/schema.ts";
import type { Actor } from "../control/protocol.ts";
import type { Gate } from "./gate.ts";
import type { AdminOperations } from "./operations.ts";
import type { Operator } from "./operator.ts";

export type { Operator, Role } from "./operator.ts";

/** What all requests below `/_weir/` share. */
export interface AdminContext {
  /** For an operator who may only read, all changes throw an `OperationError`. */
  readonly operations: AdminOperations;
  readonly config: Config;
}

/** The variables that all handlers below `/_weir/` read with `c.var`. */
export type AdminVariables = Operator & AdminContext;

/** The bindings with which Weir calls the admin app. */
export interface AdminBindings {
  readonly context: AdminContext & LogInContext;
  /** Undefined for a request to the log-in page, which needs no credential. */
  readonly operator: Operator | undefined;
}

/** What the log-in needs. */
export interface LogInContext {
  readonly gate: Gate;
  /** Adds an entry to the audit list. Never rejects. */
  readonly recordLogIn: (by: Actor) => Promise<void>;
}

/** The type of Hono's context below `/_weir/`. */
export interface AdminEnv {
  Bindings: AdminBindings;
  Variables: AdminVariables;
}
