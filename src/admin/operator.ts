import type { Actor } from "../control/protocol.ts";

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
