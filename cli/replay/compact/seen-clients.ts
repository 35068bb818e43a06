import { ClientHash } from "../../tally/client-ranking.ts";
import type { VerdictTally } from "../report.ts";
import type { CompactClients } from "./compact-clients.ts";

/**
 * Counts the requests of clients in their records first, and adds them to the tally later: one access to slow memory in
 * place of one for each table of the tally. This is possible while the tally counts all clients exactly. Then the
 * order of requests does not matter.
 */
export class SeenClients {
  readonly #clients: CompactClients;
  readonly #rules: number;
  readonly #hash = new ClientHash();
  #tally: VerdictTally | undefined;
  /** Whether requests are counted in records. */
  isCounting = true;

  /** @param rules the number of rules */
  constructor(clients: CompactClients, rules: number) {
    this.#clients = clients;
    this.#rules = rules;
  }

  /** Call it before requests are decided and after their clients were added. */
  prepare(tally: VerdictTally): void {
    this.#tally = tally;
    if (!this.isCounting || this.#clients.added <= tally.exactClients) return;
    this.flush();
    this.isCounting = false;
  }

  /** Adds the requests of all clients to the tally. */
  flush(): void {
    for (let client = 1; client <= this.#clients.size; client++) this.flushClient(client);
  }

  flushClient(client: number): void {
    const { records } = this.#clients;
    const tally = this.#tally;
    if (!tally) return;
    records.readHash(client, this.#hash);
    const seen = records.takeSeen(client);
    if (seen > 0) tally.addSeen(this.#hash, seen);
    for (let rule = 0; rule < this.#rules; rule++) {
      const seenUnder = records.takeSeenUnder(client, rule);
      if (seenUnder > 0) tally.addSeenUnder(rule, this.#hash, seenUnder);
    }
  }
}
