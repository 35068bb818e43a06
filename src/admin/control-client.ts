import { CONTROL_BINDING } from "../config/bindings.ts";
import type { ControlApi } from "../control/protocol.ts";
import { withTimeout } from "../request/timeout.ts";
import { OperationError } from "./operations.ts";

/** The maximum time that an operator waits for the control object, in milliseconds. */
const MAX_WAIT_MS = 5000;

/** The message if the control object is not bound. */
export const NO_CONTROL = `The Worker has no control object. Bind the class ControlObject as ${CONTROL_BINDING}: see docs/deploying.md.`;
const FAILED = `The control object (binding ${CONTROL_BINDING}) did not answer. Limits go on without it. Try again, and check that the Worker exports ControlObject and that a migration creates it.`;

/** The advice after a change with an unknown result. */
export const VERIFY_BEFORE_RETRY =
  "It is not known whether the change was made: look at the overrides, the client and the audit list before you repeat it.";
const UNCERTAIN = `The control object (binding ${CONTROL_BINDING}) did not answer in time. ${VERIFY_BEFORE_RETRY}`;

/**
 * Calls the control object.
 *
 * @param kind `change` if the call makes a change for an operator
 * @throws {OperationError} ("unavailable") if the object is not bound, or if the call fails or takes too long. For a
 * change that may still have been made, "uncertain"
 */
export async function callControl<Result>(
  control: ControlApi | undefined,
  call: (control: ControlApi) => Promise<Result>,
  kind: "read" | "change" = "read",
): Promise<Result> {
  if (!control) throw new OperationError("unavailable", NO_CONTROL);
  try {
    return await withTimeout(call(control), MAX_WAIT_MS, () => {
      throw new Error("timeout");
    });
  } catch {
    // The error's message may contain values of clients.
    if (kind === "change") throw new OperationError("uncertain", UNCERTAIN);
    throw new OperationError("unavailable", FAILED);
  }
}
