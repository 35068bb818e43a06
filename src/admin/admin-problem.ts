import type { Fault } from "../config/faults.ts";
import type { Config } from "../config/schema.ts";
import type { Actor } from "../control/protocol.ts";
import { problemResponse } from "../http/responses.ts";
import { listNames } from "../overrides/override-input.ts";
import { IDENTITY_FORM, isIdentity } from "../request/identity.ts";
import type { Gate } from "./gate.ts";
import type { Operator } from "./login.ts";
import { type AdminOperations, OperationError, type OperationFailure } from "./operations.ts";

const TITLES = {
  400: "Bad Request",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  503: "Service Unavailable",
} as const;

/** The detail of 404 for an unknown path. `weir` looks for it, because an older Worker has fewer paths. */
export const NO_PATH = "There is nothing at this path. See docs/operating.md.";

type Status = keyof typeof TITLES;

/** Creates a response with a problem (RFC 9457). */
export function adminProblem(
  status: Status,
  detail: string,
  others: { readonly faults?: readonly Fault[]; readonly changed?: false } = {},
): Response {
  const problem = { type: "about:blank", title: TITLES[status], status, detail };
  return problemResponse({ ...problem, ...others });
}

const STATUS_OF = {
  invalid: 400,
  unsupported: 415,
  forbidden: 403,
  "not-found": 404,
  conflict: 409,
  unavailable: 503,
  uncertain: 503,
} as const satisfies Record<OperationFailure, Status>;

/** Creates the response for an error. For an unexpected error, it has only the error's name. */
export function problemOf(error: unknown): Response {
  if (error instanceof OperationError) {
    const { kind, message, faults } = error;
    // `unavailable` and `uncertain` have the same status. `changed: false` tells programs that nothing was changed.
    const changed = kind === "unavailable" && ({ changed: false } as const);
    return adminProblem(STATUS_OF[kind], message, { ...(faults && { faults }), ...changed });
  }
  const name = error instanceof Error ? error.name : typeof error;
  return adminProblem(503, `Weir could not answer because of an internal error (${name}).`);
}

export type { Operator, Role } from "./login.ts";

/** The values that all requests below `/_weir/` share. */
interface AdminContext {
  /** For an operator with the role `read`, all changes throw an `OperationError`. */
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

/** The values that the log-in needs. */
interface LogInContext {
  readonly gate: Gate;
  /** Adds an entry to the audit list. Never rejects. */
  readonly recordLogIn: (by: Actor) => Promise<void>;
}

/** The type of Hono's context below `/_weir/`. */
export interface AdminEnv {
  Bindings: AdminBindings;
  Variables: AdminVariables;
}

/** Creates the error for a rule's name that the configuration does not have. */
export function unknownRule({ rules }: Pick<Config, "rules">): OperationError {
  const names = listNames(rules.map(({ name }) => name));
  const message = `The configuration has no rule of this name. The rules are: ${names}.`;
  return new OperationError("not-found", message);
}

/** Creates the error for the id of an override that does not exist. */
export function noOverride(id: string, config: Pick<Config, "rules">): OperationError {
  const [rule = "", client] = id.split(":");
  if (!config.rules.some(({ name }) => name === rule)) return unknownRule(config);
  let whose = client === undefined ? "all clients" : `the client ${client}`;
  // A text that is no identity may be an address or a key.
  if (client !== undefined && !isIdentity(client)) whose = `a client that is not ${IDENTITY_FORM}`;
  return new OperationError("not-found", `The rule ${rule} has no override for ${whose}.`);
}
