import * as v from "valibot";
import { isRecord } from "../config/fields.ts";
import type { OverrideChange } from "../control/protocol.ts";
import { MAX_OVERRIDES, type Override } from "../overrides/override.ts";
import { checkOverride } from "../overrides/override-input.ts";
import type { AdminVariables } from "./admin-problem.ts";
import { invalidInput, selectorOf } from "./api-input.ts";
import { type ClientSelector, type InputFault, OperationError } from "./operations.ts";

const Selector = v.union([
  v.object({ client: v.string(), known: v.optional(v.undefined()) }),
  v.object({ client: v.optional(v.undefined()), known: v.record(v.string(), v.string()) }),
]);

const SELECTOR_FAULT: InputFault = {
  path: "client",
  message:
    "must be an identity, or known an object of texts by the names in keys; leave out both for all clients of the rule.",
};

/**
 * Checks an override and sets it. If several of the known values can have counted the client, sets one for each
 * of these identities.
 *
 * @throws {OperationError} if the input has faults, or if there are too many overrides
 */
export async function setOverrides(
  body: unknown,
  { operations, config, actor }: Pick<AdminVariables, "operations" | "config" | "actor">,
): Promise<readonly Override[]> {
  const { client, known } = isRecord(body) ? body : {};
  const isForClient = client !== undefined || known !== undefined;
  const faults: InputFault[] = [];
  let selector: ClientSelector | undefined;
  if (isForClient) {
    const read = v.safeParse(Selector, { client, known });
    if (read.success) selector = selectorOf(read.output);
    else faults.push(SELECTOR_FAULT);
  }
  const checked = checkOverride(body, {
    isForClient,
    rules: config.rules,
    now: Date.now(),
    otherFields: ["client", "known"],
  });
  if (!checked.ok) throw invalidInput([...faults, ...checked.faults]);
  if (faults.length > 0) throw invalidInput(faults);
  const { isForClient: _, ...change } = checked.override;
  const clients = selector ? await operations.identify(selector, change.rule) : [{}];
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
