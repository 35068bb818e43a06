/** What is counted about one client. */
export interface ClientRecord {
  requests: number;
  denied: number;
  deniedSucceeded: number;
  /** The times of the first and of the last denied request. */
  firstDenied: number;
  lastDenied: number;
  /** Denied under the other configuration of a comparison. */
  deniedBefore: number;
  newlyDenied: number;
  newlyDeniedSucceeded: number;
  newlyAllowed: number;
  /** How many more denied requests the client may have, because clients have been dropped before it came. */
  readonly error: number;
}

/** Numbers of clients. */
interface ClientSums {
  clients: number;
  denied: number;
  deniedBefore: number;
  newlyDenied: number;
  noLongerDenied: number;
  deniedMore: number;
  deniedLess: number;
}

const NONE: ClientSums = {
  clients: 0,
  denied: 0,
  deniedBefore: 0,
  newlyDenied: 0,
  noLongerDenied: 0,
  deniedMore: 0,
  deniedLess: 0,
};

/**
 * Counts about each client, in bounded memory. When there are too many clients, the half with the fewest denied
 * requests is dropped. A dropped client that returns counts as a new one, so the numbers of clients are then estimates.
 */
export class ClientTable {
  readonly #maxClients: number;
  readonly #clients = new Map<string, ClientRecord>();
  readonly #dropped: ClientSums = { ...NONE };
  /** The most requests of one dropped client that were denied. */
  #mostDropped = 0;

  constructor(maxClients: number) {
    this.#maxClients = maxClients;
  }

  /** Whether numbers of clients are estimates. */
  get isEstimate(): boolean {
    return this.#dropped.clients > 0;
  }

  /** Whether numbers of clients with denied requests are estimates. */
  get isDeniedEstimate(): boolean {
    return this.#mostDropped > 0;
  }

  /** Returns the record of a client, which may be a new one. */
  of(client: string): ClientRecord {
    const known = this.#clients.get(client);
    if (known) return known;
    if (this.#clients.size >= this.#maxClients) this.#drop();
    const record: ClientRecord = {
      ...{ requests: 0, denied: 0, deniedSucceeded: 0, firstDenied: 0, lastDenied: 0 },
      ...{ deniedBefore: 0, newlyDenied: 0, newlyDeniedSucceeded: 0, newlyAllowed: 0 },
      error: this.#mostDropped,
    };
    this.#clients.set(client, record);
    return record;
  }

  sums(): ClientSums {
    const sums = { ...this.#dropped };
    for (const record of this.#clients.values()) addTo(sums, record);
    return sums;
  }

  #drop(): void {
    const sorted = [...this.#clients].sort(
      ([, one], [, other]) => mostDenied(one) - mostDenied(other) || one.requests - other.requests,
    );
    for (const [client, record] of sorted.slice(0, Math.ceil(sorted.length / 2))) {
      addTo(this.#dropped, record);
      this.#mostDropped = Math.max(this.#mostDropped, mostDenied(record));
      this.#clients.delete(client);
    }
  }
}

function mostDenied({ denied, deniedBefore }: ClientRecord): number {
  return Math.max(denied, deniedBefore);
}

function addTo(sums: ClientSums, { denied, deniedBefore }: ClientRecord): void {
  sums.clients++;
  if (denied > 0) sums.denied++;
  if (deniedBefore > 0) sums.deniedBefore++;
  if (denied === deniedBefore) return;
  if (deniedBefore === 0) sums.newlyDenied++;
  else if (denied === 0) sums.noLongerDenied++;
  else if (denied > deniedBefore) sums.deniedMore++;
  else sums.deniedLess++;
}
