import { waitUntil } from "cloudflare:workers";
import { CONTROL_BINDING } from "../config/binding-names.ts";
import type { Actor, AuditEntry } from "../control/protocol.ts";
import { auditStateOf, callStore } from "./client-report.ts";
import type { SelectedClient } from "./client-selector.ts";
import { LOOK } from "./control-calls.ts";
import { type ClientReport, OperationError } from "./operations.ts";

/** What an operator changes about clients, besides overrides. */
export type ClientChange = "reset" | "lift-ban";

/** An entry that the audit list has not numbered yet. */
export type NewEntry = Omit<AuditEntry, "id" | "at">;

interface ChangeOptions {
  readonly action: ClientChange;
  readonly by: Actor;
  readonly why: string;
  /** Makes the change in the store. */
  readonly make: (client: SelectedClient) => Promise<unknown>;
  /** Adds an entry to the audit list. */
  readonly record: (entry: NewEntry) => Promise<void>;
}

/** Why the entry of a change is followed by another one. */
const NOT_MADE =
  "Not done: the control object did not confirm the entry about this change in time, so Weir did not make the change.";
const MAYBE_MADE = "Failed: the store did not answer, so this change may be missing.";

/**
 * Changes clients, each with an entry in the audit list. The entry comes first, so that nothing changes without an
 * entry. So it says only what was before, and a change that fails adds an entry of its own.
 *
 * @param before the state of each client
 * @throws {OperationError} if a change was not made, or if that is not known. The clients after it are unchanged
 */
export async function changeClients(
  clients: readonly SelectedClient[],
  before: readonly ClientReport[],
  { action, by, why, make, record }: ChangeOptions,
): Promise<void> {
  // The operator does not wait for this entry.
  const recordFailure = (entry: NewEntry) => waitUntil(record(entry).catch(() => {}));
  for (const [index, client] of clients.entries()) {
    const entry = { by, action, rule: client.rule.name, client: client.identity };
    const report = before[index];
    try {
      await record({ ...entry, ...(report && { before: auditStateOf(report) }), why });
    } catch {
      recordFailure({ ...entry, why: NOT_MADE });
      const kind = index === 0 ? "unavailable" : "uncertain";
      throw new OperationError(kind, notRecorded(index, clients.length));
    }
    try {
      await callStore(() => make(client));
    } catch (error) {
      recordFailure({ ...entry, why: MAYBE_MADE });
      if (!(error instanceof OperationError)) throw error;
      throw new OperationError("uncertain", `${error.message} ${LOOK}`);
    }
  }
}

function notRecorded(done: number, all: number): string {
  const made = done === 0 ? "nothing was changed" : `only ${done} of ${all} clients were changed`;
  return `The control object (binding ${CONTROL_BINDING}) did not answer, and without an entry in the audit list there is no change: ${made}. Try again.`;
}
