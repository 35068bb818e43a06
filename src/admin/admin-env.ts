import type { Config } from "../config/schema.ts";
import type { Actor } from "../control/protocol.ts";
import type { AdminOperations } from "./operations.ts";

/** What a credential allows: to read and to change, or only to read. */
export type Role = "admin" | "read";

/** An operator whose credential is valid. */
export interface Operator {
  /** Who it is, for the audit list: see `Actor`. */
  readonly actor: Actor;
  readonly role: Role;
  /**
   * The token that each change by the session's cookie must send, in the field `csrf` of a form or in the
   * header `X-Weir-Csrf`. Empty if the credential is not a cookie: then no such token is needed.
   */
  readonly csrf: string;
}

/** What all requests below `/_weir/` share. */
export interface AdminContext {
  readonly operations: AdminOperations;
  readonly config: Config;
}

/** The variables that all handlers below `/_weir/` read with `c.var`. */
export type AdminVariables = Operator & AdminContext;

/** The bindings with which the gate calls the admin app. */
export interface AdminBindings {
  readonly context: AdminContext;
  readonly operator: Operator;
}

/** The type of Hono's context below `/_weir/`. */
export interface AdminEnv {
  Bindings: AdminBindings;
  Variables: AdminVariables;
}
