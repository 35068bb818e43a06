import { formatCount } from "../../src/admin/format.ts";
import { hasSucceeded, type LogRequest } from "../logs/log-request.ts";
import { type ReportNote, requestsHave } from "../logs/needs.ts";
import type { ReplayEngine, ReplayedRequest } from "./engine.ts";
import type {
  ComparedClient,
  Comparison,
  Counts,
  DeniedClient,
  ReplayedRule,
  ReplayReport,
} from "./report.ts";

/** The maximum number of clients in a list of a report. */
const LISTED_CLIENTS = 20;
/** The maximum number of clients that are counted for all rules together, and for each rule. */
const MAX_CLIENTS = 500_000;

/** The counts of one client. */
interface Client {
  requests: number;
  denied: number;
  deniedSucceeded: number;
  /** The times of its first and of its last denied request. */
  firstDenied: number;
  lastDenied: number;
  /** Denied under the other configuration of a comparison. */
  deniedBefore: number;
  newlyDenied: number;
  newlyDeniedSucceeded: number;
}

/** Adds up the requests of one rule, or of all rules, by their verdicts. */
class Totals {
  readonly clients = new Map<string, Client>();
  /** Requests of clients that came after the first {@link MAX_CLIENTS}. */
  uncounted = 0;
  readonly #hasStatuses: boolean;
  readonly #maxClients: number;
  #requests = 0;
  #denied = 0;
  #deniedSucceeded = 0;

  constructor(hasStatuses: boolean, maxClients: number) {
    this.#hasStatuses = hasStatuses;
    this.#maxClients = maxClients;
  }

  /**
   * @param text the client; undefined if it is unknown
   * @returns the client's counts; undefined if it is not counted
   */
  add(request: LogRequest, isDenied: boolean, text: string | undefined): Client | undefined {
    const isLost = isDenied && hasSucceeded(request);
    this.#requests++;
    if (isDenied) this.#denied++;
    if (isLost) this.#deniedSucceeded++;
    const client = text === undefined ? undefined : this.#clientOf(text);
    if (!client) return undefined;
    client.requests++;
    if (!isDenied) return client;
    client.denied++;
    if (isLost) client.deniedSucceeded++;
    client.firstDenied = Math.min(client.firstDenied, request.at);
    client.lastDenied = Math.max(client.lastDenied, request.at);
    return client;
  }

  #clientOf(text: string): Client | undefined {
    const known = this.clients.get(text);
    if (known) return known;
    if (this.clients.size >= this.#maxClients) {
      this.uncounted++;
      return undefined;
    }
    const client: Client = {
      ...{ requests: 0, denied: 0, deniedSucceeded: 0 },
      ...{ firstDenied: Number.POSITIVE_INFINITY, lastDenied: Number.NEGATIVE_INFINITY },
      ...{ deniedBefore: 0, newlyDenied: 0, newlyDeniedSucceeded: 0 },
    };
    this.clients.set(text, client);
    return client;
  }

  report(): Counts & { mostDenied: DeniedClient[] } {
    const [requests, denied] = [this.#requests, this.#denied];
    return {
      requests,
      allowed: requests - denied,
      denied,
      deniedShare: requests === 0 ? 0 : denied / requests,
      deniedSucceeded: this.known(this.#deniedSucceeded),
      clients: this.clients.size,
      clientsDenied: this.countClients((client) => client.denied > 0),
      mostDenied: this.most("denied").map(([client, counts]) => ({
        client,
        requests: counts.requests,
        denied: counts.denied,
        deniedSucceeded: this.known(counts.deniedSucceeded),
        firstDenied: new Date(counts.firstDenied).toISOString(),
        lastDenied: new Date(counts.lastDenied).toISOString(),
      })),
    };
  }

  countClients(isCounted: (client: Client) => boolean): number {
    let number = 0;
    for (const client of this.clients.values()) if (isCounted(client)) number++;
    return number;
  }

  /** Returns the clients with the highest counts above 0, the highest first. */
  most(field: "denied" | "newlyDenied"): [text: string, client: Client][] {
    return [...this.clients]
      .filter(([, client]) => client[field] > 0)
      .sort(([one, a], [other, b]) => b[field] - a[field] || (one < other ? -1 : 1))
      .slice(0, LISTED_CLIENTS);
  }

  /** A number that depends on statuses is unknown without them. */
  known(value: number): number | undefined {
    return this.#hasStatuses ? value : undefined;
  }
}

type ComparedTotals = Pick<Comparison, "before" | "requests" | "clients" | "mostNewlyDenied">;

interface RuleTotals {
  readonly rule: ReplayedRule;
  readonly totals: Totals;
  mostOpen: number | undefined;
}

/** Adds up the verdicts of a replay, in bounded memory. */
export class ReplayTotals {
  readonly #all: Totals;
  readonly #maxClients: number;
  readonly #rules: readonly RuleTotals[];
  #unmatched = 0;
  readonly #compared = {
    ...{ allowedByBoth: 0, deniedByBoth: 0, newlyDenied: 0 },
    ...{ newlyDeniedSucceeded: 0, newlyAllowed: 0 },
  };

  /** @param hasStatuses whether the log states statuses */
  constructor(
    { rules }: Pick<ReplayEngine, "rules">,
    hasStatuses = true,
    maxClients = MAX_CLIENTS,
  ) {
    const totals = () => new Totals(hasStatuses, maxClients);
    this.#maxClients = maxClients;
    this.#all = totals();
    this.#rules = rules.map((rule) => ({ rule, totals: totals(), mostOpen: undefined }));
  }

  /** @param before the same request, decided by the other configuration */
  add({ request, outcome, verdicts }: ReplayedRequest, before?: ReplayedRequest): void {
    const isDenied = outcome === "limited";
    const client = this.#all.add(request, isDenied, request.ip);
    if (outcome === "unmatched") this.#unmatched++;
    for (const { rule, client: text, denied, open } of verdicts) {
      const each = this.#rules[rule] as RuleTotals;
      each.totals.add(request, denied, text);
      if (open !== undefined) each.mostOpen = Math.max(each.mostOpen ?? 0, open);
    }
    if (before) this.#compare(request, isDenied, before, client);
  }

  #compare(
    request: LogRequest,
    isDenied: boolean,
    { outcome }: ReplayedRequest,
    client: Client | undefined,
  ): void {
    const wasDenied = outcome === "limited";
    if (wasDenied && client) client.deniedBefore++;
    if (wasDenied) this.#compared[isDenied ? "deniedByBoth" : "newlyAllowed"]++;
    else if (!isDenied) this.#compared.allowedByBoth++;
    else {
      const isLost = hasSucceeded(request);
      this.#compared.newlyDenied++;
      if (isLost) this.#compared.newlyDeniedSucceeded++;
      if (client) client.newlyDenied++;
      if (client && isLost) client.newlyDeniedSucceeded++;
    }
  }

  report(): Pick<ReplayReport, "total" | "rules"> {
    return {
      total: { ...this.#all.report(), unmatched: this.#unmatched },
      rules: this.#rules.map(({ rule, totals, mostOpen }) => ({
        ...rule,
        ...totals.report(),
        mostOpen,
      })),
    };
  }

  /** Returns the note about clients that are not counted. */
  notes(): ReportNote[] {
    const all = [this.#all, ...this.#rules.map(({ totals }) => totals)];
    const uncounted = Math.max(...all.map((totals) => totals.uncounted));
    if (uncounted === 0) return [];
    const text = `The log has more than ${formatCount(this.#maxClients, "client")}. Numbers of clients are about those that came first; ${requestsHave(uncounted)} a later client. Read a shorter time with --from and --to.`;
    return [{ code: "too-many-clients", text }];
  }

  comparison(): ComparedTotals {
    const all = this.#all;
    const { deniedByBoth, newlyAllowed, newlyDeniedSucceeded } = this.#compared;
    return {
      before: {
        denied: deniedByBoth + newlyAllowed,
        clientsDenied: all.countClients(({ deniedBefore }) => deniedBefore > 0),
      },
      requests: {
        ...this.#compared,
        newlyDeniedSucceeded: all.known(newlyDeniedSucceeded),
      },
      clients: {
        newlyDenied: all.countClients((each) => each.denied > 0 && each.deniedBefore === 0),
        noLongerDenied: all.countClients((each) => each.denied === 0 && each.deniedBefore > 0),
      },
      mostNewlyDenied: all.most("newlyDenied").map(([client, counts]): ComparedClient => {
        const { requests, deniedBefore, denied, newlyDenied } = counts;
        return {
          ...{ client, requests, deniedBefore, denied, newlyDenied },
          newlyDeniedSucceeded: all.known(counts.newlyDeniedSucceeded),
        };
      }),
    };
  }
}
