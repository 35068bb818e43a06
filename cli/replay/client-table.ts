/** The counts of a client with denied requests. */
export interface ClientRecord {
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
  /** How many denied requests of this client may be missing, because an earlier record was dropped. */
  readonly error: number;
}

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

/** A client that remembers its place in a table. */
export interface CountedClient {
  place?: number;
  /** The generation of the table that the place is from. */
  generation?: number;
}

const FIRST_CLIENTS = 1024;

/**
 * Counts the requests of clients in bounded memory. When there are too many clients, the half with the fewest denied
 * requests is dropped. A dropped client that returns counts as a new one, so the numbers of clients become estimates.
 *
 * The table has a column for all rules together, and one for each rule. All rules share one table, because most of them
 * count by address, and looking up a text takes long. Only denied clients have records, because most clients are never
 * denied.
 */
export class ClientTable {
  readonly #columns: number;
  readonly #maxClients: number;
  #places = new Map<string, number>();
  /** The numbers of requests. Those of a client begin at its place, one for each column. */
  #requests: Uint32Array;
  readonly #records: readonly Map<string, ClientRecord>[];
  /** The sums of the clients that were dropped, for each column. */
  readonly #dropped: readonly ClientSums[];
  /** The most denied requests of one dropped client. */
  #mostDropped = 0;
  /** How often clients were dropped. Each time, the remaining clients get new places. */
  #generation = 0;

  constructor(columns: number, maxClients: number) {
    this.#columns = columns;
    this.#maxClients = maxClients;
    this.#requests = new Uint32Array(FIRST_CLIENTS * columns);
    const all = Array.from({ length: columns });
    this.#records = all.map(() => new Map());
    this.#dropped = all.map(() => ({ ...NONE }));
  }

  /** Whether numbers of clients are estimates. */
  get isEstimate(): boolean {
    return this.#generation > 0;
  }

  /** Whether numbers of clients with denied requests are estimates. */
  get isDeniedEstimate(): boolean {
    return this.#mostDropped > 0;
  }

  /**
   * Returns the place of a client, and adds an unknown client. The place is valid until the next call.
   *
   * @param counted remembers the place for later calls
   */
  placeOf(client: string, counted?: CountedClient): number {
    if (counted?.place !== undefined && counted.generation === this.#generation) {
      return counted.place;
    }
    const place = this.#places.get(client) ?? this.#insert(client);
    if (counted) {
      counted.place = place;
      counted.generation = this.#generation;
    }
    return place;
  }

  addRequest(place: number, column: number): void {
    const cell = place + column;
    this.#requests[cell] = (this.#requests[cell] as number) + 1;
  }

  requestsOf(client: string, column: number): number {
    const place = this.#places.get(client);
    return place === undefined ? 0 : (this.#requests[place + column] as number);
  }

  /** Returns the record of a client, and creates a missing one. */
  recordOf(client: string, column: number): ClientRecord {
    const records = this.#records[column] as Map<string, ClientRecord>;
    const known = records.get(client);
    if (known) return known;
    const record: ClientRecord = {
      ...{ denied: 0, deniedSucceeded: 0, firstDenied: 0, lastDenied: 0, deniedBefore: 0 },
      ...{ newlyDenied: 0, newlyDeniedSucceeded: 0, newlyAllowed: 0, error: this.#mostDropped },
    };
    records.set(client, record);
    return record;
  }

  sums(column: number): ClientSums {
    const sums = { ...(this.#dropped[column] as ClientSums) };
    for (const [client, place] of this.#places) this.#addTo(sums, client, place, column);
    return sums;
  }

  #insert(client: string): number {
    if (this.#places.size >= this.#maxClients) this.#drop();
    const place = this.#places.size * this.#columns;
    if (place >= this.#requests.length) {
      const longer = new Uint32Array(2 * this.#requests.length);
      longer.set(this.#requests);
      this.#requests = longer;
    }
    this.#places.set(client, place);
    return place;
  }

  #drop(): void {
    const columns = [...this.#records.keys()];
    const sorted = [...this.#places]
      .map(([client, place]) => ({
        client,
        place,
        denied: Math.max(...columns.map((column) => this.#mostDenied(client, column))),
        requests: Math.max(...columns.map((column) => this.#requests[place + column] as number)),
      }))
      .sort((one, other) => one.denied - other.denied || one.requests - other.requests);
    for (const { client, place, denied } of sorted.splice(0, Math.ceil(sorted.length / 2))) {
      for (const column of columns) {
        this.#addTo(this.#dropped[column] as ClientSums, client, place, column);
        this.#records[column]?.delete(client);
      }
      this.#mostDropped = Math.max(this.#mostDropped, denied);
    }
    const before = this.#requests;
    this.#requests = new Uint32Array(before.length);
    this.#places = new Map();
    for (const { client, place } of sorted) {
      const cells = before.subarray(place, place + this.#columns);
      this.#requests.set(cells, this.#insert(client));
    }
    this.#generation++;
  }

  #mostDenied(client: string, column: number): number {
    const { denied = 0, deniedBefore = 0 } = this.#records[column]?.get(client) ?? {};
    return Math.max(denied, deniedBefore);
  }

  #addTo(sums: ClientSums, client: string, place: number, column: number): void {
    if (this.#requests[place + column] === 0) return;
    sums.clients++;
    const { denied = 0, deniedBefore = 0 } = this.#records[column]?.get(client) ?? {};
    if (denied > 0) sums.denied++;
    if (deniedBefore > 0) sums.deniedBefore++;
    if (denied === deniedBefore) return;
    if (deniedBefore === 0) sums.newlyDenied++;
    else if (denied === 0) sums.noLongerDenied++;
    else if (denied > deniedBefore) sums.deniedMore++;
    else sums.deniedLess++;
  }
}
