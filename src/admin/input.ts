import type { Context } from "hono";
import * as v from "valibot";
import {
  codeOf,
  type Fault,
  type FaultCode,
  keysOf,
  moreFaults,
  pathOf,
  shortened,
} from "../config/faults.ts";
import { isRecord } from "../config/fields.ts";
import type { OverrideChange } from "../control/protocol.ts";
import { MAX_OVERRIDES, type Override } from "../overrides/override.ts";
import { checkOverride, describeFaults } from "../overrides/override-input.ts";
import type { AdminEnv, AdminVariables } from "./admin-problem.ts";
import { type ClientSelector, OperationError } from "./operations.ts";

/** The maximum number of faults in an answer. In a longer list, the last element has the number of the others. */
const MAX_FAULTS = 20;

/** Creates the error for input with faults. */
export function invalidInput(faults: readonly Fault[]): OperationError {
  const more = faults.length - MAX_FAULTS;
  const listed = more > 0 ? [...faults.slice(0, MAX_FAULTS), moreFaults(more)] : faults;
  return new OperationError("invalid", describeFaults(listed), listed);
}

/** Creates the error for input with one fault. @param path the path of the field; empty for the whole input */
export function invalidField(
  path: string,
  message: string,
  code: FaultCode = "not-allowed",
): OperationError {
  return invalidInput([{ path, code, message }]);
}

/** Reads the JSON of a request's body. @throws {OperationError} if the body is not JSON */
export async function readJson(c: Context<AdminEnv>): Promise<unknown> {
  // Pages of other sites can send other types than JSON without a preflight.
  if (!/^application\/json *(?:;|$)/i.test(c.req.header("content-type") ?? "")) {
    throw new OperationError("unsupported", "Send the body with Content-Type: application/json.");
  }
  const text = await c.req.text();
  try {
    return JSON.parse(text);
  } catch {
    throw invalidField("", "The body must be JSON in UTF-8.");
  }
}

/**
 * Checks input by its schema.
 *
 * @throws {OperationError} with a fault for each field. The messages contain no given value, because a value may
 * identify a client
 */
export function check<Schema extends v.GenericSchema>(
  schema: Schema,
  input: unknown,
): v.InferOutput<Schema> {
  // Valibot would accept a list as an object.
  const result = v.safeParse(schema, Array.isArray(input) ? null : input);
  if (result.success) return result.output;
  throw invalidInput(
    result.issues.map((issue) => {
      const path = pathOf(keysOf(issue).map((key) => shortened(String(key))));
      const message = path ? `${issue.message}.` : `The body ${issue.message}.`;
      return { path, code: codeOf(issue), message };
    }),
  );
}

/** Returns a query's parameters. For a repeated parameter, returns the last value. */
export function queryOf(c: Context<AdminEnv>): Record<string, string> {
  return Object.fromEntries(new URL(c.req.url).searchParams);
}

/** Returns the selector of a body that has exactly one of the two fields. */
export function selectorOf(body: {
  readonly client?: string | undefined;
  readonly known?: Readonly<Record<string, string>> | undefined;
}): ClientSelector {
  return body.client === undefined ? { known: body.known ?? {} } : { client: body.client };
}

/**
 * Reads the form in a request's body. A body of another type has no fields.
 *
 * @throws {OperationError} if the body is not a form of its Content-Type
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

const Selector = v.union([
  v.object({ client: v.string(), known: v.optional(v.undefined()) }),
  v.object({ client: v.optional(v.undefined()), known: v.record(v.string(), v.string()) }),
]);

const SELECTOR_FAULT: Fault = {
  path: "client",
  code: "not-allowed",
  message:
    "must be an identity, or known an object of texts by the names in keys; leave out both for all clients of the rule.",
};

/**
 * Checks an override and sets it. The known values may lead to several identities of the client. Each of them then
 * gets an override.
 *
 * @throws {OperationError} if the input has faults, or if there are too many overrides
 */
export async function setOverrides(
  body: unknown,
  { operations, config, actor }: Pick<AdminVariables, "operations" | "config" | "actor">,
): Promise<readonly Override[]> {
  const { client, known } = isRecord(body) ? body : {};
  const isForClient = client !== undefined || known !== undefined;
  const read = v.safeParse(Selector, { client, known });
  const checked = checkOverride(body, {
    isForClient,
    rules: config.rules,
    now: Date.now(),
    otherFields: ["client", "known"],
  });
  const faults = isForClient && !read.success ? [SELECTOR_FAULT] : [];
  if (!checked.ok) throw invalidInput([...faults, ...checked.faults]);
  if (faults.length > 0) throw invalidInput(faults);
  const { isForClient: _, ...change } = checked.override;
  const clients = read.success
    ? await operations.identify(selectorOf(read.output), change.rule)
    : [{}];
  const overrides: Override[] = [];
  for (const each of clients) {
    const result = await operations.setOverride({ ...change, ...each } as OverrideChange, actor);
    if (!result.ok) throw fullError(overrides.length, clients.length);
    overrides.push(result.override);
  }
  return overrides;
}

function fullError(done: number, all: number): OperationError {
  const message = `There are ${MAX_OVERRIDES} overrides already, which is the maximum. Remove some, or raise the rule's limit.`;
  if (done === 0) return new OperationError("conflict", message);
  return new OperationError(
    "uncertain",
    `The change was made for only ${done} of ${all} clients. ${message}`,
  );
}
