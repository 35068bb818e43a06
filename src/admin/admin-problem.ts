import { problemResponse } from "../http/responses.ts";
import { type InputFault, OperationError, type OperationFailure } from "./operations.ts";

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

type Status = keyof typeof TITLES;

/** Creates an answer with a problem (RFC 9457). */
export function adminProblem(
  status: Status,
  detail: string,
  others: { readonly faults?: readonly InputFault[]; readonly changed?: false } = {},
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

/** Creates the answer for an error. An unexpected error shows only its name. */
export function problemOf(error: unknown): Response {
  if (error instanceof OperationError) {
    const { kind, message, faults } = error;
    // Both kinds of failures have the status 503, and programs must not repeat a change that may have been made.
    const changed = kind === "unavailable" && ({ changed: false } as const);
    return adminProblem(STATUS_OF[kind], message, { ...(faults && { faults }), ...changed });
  }
  const name = error instanceof Error ? error.name : typeof error;
  return adminProblem(503, `Weir could not answer because of an internal error (${name}).`);
}
