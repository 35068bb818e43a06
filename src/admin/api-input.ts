import type { Context } from "hono";
import * as v from "valibot";
import { keysOf, pathOf } from "../config/faults.ts";
import { describeFaults } from "../overrides/override-input.ts";
import type { AdminEnv } from "./admin-problem.ts";
import { type ClientSelector, type InputFault, OperationError } from "./operations.ts";

/** The maximum number of faults in an answer. */
const MAX_FAULTS = 20;

/** Creates the error for input with faults. */
export function invalidInput(faults: readonly InputFault[]): OperationError {
  const listed = faults.slice(0, MAX_FAULTS);
  return new OperationError("invalid", describeFaults(listed), listed);
}

/** Reads the JSON of a request's body. @throws {OperationError} if it is none */
export async function readJson(c: Context<AdminEnv>): Promise<unknown> {
  // Pages of other sites can send all other types without the browser asking first.
  if (!/^application\/json *(?:;|$)/i.test(c.req.header("content-type") ?? "")) {
    throw new OperationError("unsupported", "Send the body with Content-Type: application/json.");
  }
  const text = await c.req.text();
  try {
    return JSON.parse(text);
  } catch {
    throw invalidInput([{ path: "", message: "The body must be JSON in UTF-8." }]);
  }
}

/**
 * Checks input by its schema.
 *
 * @throws {OperationError} with a fault for each field. The messages contain no given value, because it may
 * identify a client
 */
export function check<Schema extends v.GenericSchema>(
  schema: Schema,
  input: unknown,
): v.InferOutput<Schema> {
  // Valibot takes a list for an object.
  const result = v.safeParse(schema, Array.isArray(input) ? undefined : input);
  if (result.success) return result.output;
  throw invalidInput(
    result.issues.map((issue) => {
      const path = pathOf(keysOf(issue).map((key) => String(key).slice(0, 40)));
      return { path, message: path ? `${issue.message}.` : `The body ${issue.message}.` };
    }),
  );
}

/** Returns a query's parameters. If one is repeated, the last one is used. */
export function queryOf(c: Context<AdminEnv>): Record<string, string> {
  return Object.fromEntries(new URL(c.req.url).searchParams);
}

/** Returns the selector of a body with exactly one of both fields. */
export function selectorOf(body: {
  readonly client?: string | undefined;
  readonly known?: Readonly<Record<string, string>> | undefined;
}): ClientSelector {
  return body.client === undefined ? { known: body.known ?? {} } : { client: body.client };
}
