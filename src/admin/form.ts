import type { Context } from "hono";
import type { AdminEnv } from "./admin-problem.ts";
import { OperationError } from "./operations.ts";

/**
 * Reads the form in a request's body. A body of another type has no fields.
 *
 * @throws {OperationError} if the body is not the form that its Content-Type says
 */
export async function readForm(c: Context<AdminEnv>): Promise<Record<string, string | File>> {
  try {
    return await c.req.parseBody();
  } catch {
    throw new OperationError(
      "invalid",
      "The form cannot be read. Send it as application/x-www-form-urlencoded in UTF-8.",
    );
  }
}
