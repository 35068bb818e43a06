import { hasSucceeded, type LogRequest } from "../logs/log-request.ts";
import { type ClientRecord, ClientTable } from "./client-table.ts";
import type { ReplayEngine } from "./engine.ts";
import type { ReplayedRequest } from "./groups.ts";
import { type LoudClient, LoudClients } from "./loud-clients.ts";
import type {
  ComparedClient,
  Comparison,
  Counts,
  DeniedClient,
  Frequent,
  ReplayedRule,
  ReplayReport,
  Timeline,
} from "./report.ts";
import { TimeAxis } from "./time-axis.ts";
import { WorstWindows } from "./worst-windows.ts";

/** The maximum number of clients in a list of a report. */
const LISTED_CLIENTS = 20;
/** The maximum number of user agents of a client in a report, and of its paths. */
const LISTED_TEXTS = 3;

/** The maximum number of clients in the table. */
const MAX_CLIENTS = 500_000;

function textsOf({ userAgents, paths }: LoudClient<string>): {
  userAgents: readonly Frequent[];
  paths: readonly Frequent[];
} {
  return { userAgents: userAgents.top(LISTED_TEXTS), paths: paths.top(LISTED_TEXTS) };
}

/** The column for all rules together. The columns of single rules follow. */
const ALL_RULES = 0;

class RequestCounts {
  readonly #hasStatuses: boolean;
  #requests = 0;
  #denied = 0;
  #deniedSucceeded = 0;

  constructor(hasStatuses: boolean) {
    this.#hasStatuses = hasStatuses;
  }

  add(request: LogRequest, isDenied: boolean): void {
    this.#requests++;
    if (!isDenied) return;
    this.#denied++;
    if (hasSucceeded(request)) this.#deniedSucceeded++;
  }

  report(clients: ClientTable, column: number, field: "denied" | "deniedBefore"): Counts {
    const sums = clients.sums(column);
    const [requests, denied] = [this.#requests, this.#denied];
    return {
      requests,
      allowed: requests - denied,
      denied,
      deniedShare: requests === 0 ? 0 : denied / requests,
      deniedSucceeded: this.#hasStatuses ? this.#deniedSucceeded : undefined,
      clients: sums.clients,
      clientsDenied: sums[field],
      isEstimate: clients.isEstimate,
      isDeniedEstimate: clients.isDeniedEstimate,
    };
  }
}

/** Adds up the requests of one rule, or of all rules, by their verdicts. */
class Totals {
  readonly #clients: ClientTable;
  readonly #column: number;
  readonly #hasStatuses: boolean;
  readonly #counts: RequestCounts;
  readonly #loud = new LoudClients<string>();
  readonly #axis: TimeAxis;
  readonly #allowed: Uint32Array;
  readonly #denied: Uint32Array;

  /** @param column the column of the table that has the records */
  constructor(axis: TimeAxis, hasStatuses: boolean, clients: ClientTable, column: number) {
    this.#clients = clients;
    this.#column = column;
    this.#hasStatuses = hasStatuses;
    this.#counts = new RequestCounts(hasStatuses);
    this.#axis = axis;
    this.#allowed = axis.series();
    this.#denied = axis.series();
  }

  /**
   * @param client undefined if it is unknown
   * @param place the client's place in the table
   * @param step the step of the request's time
   */
  add(
    request: LogRequest,
    isDenied: boolean,
    client: string | undefined,
    place: number | undefined,
    step: number,
  ): void {
    this.#counts.add(request, isDenied);
    const series = isDenied ? this.#denied : this.#allowed;
    series[step] = (series[step] as number) + 1;
    if (client === undefined || place === undefined) return;
    this.#clients.addRequest(place, this.#column);
    if (!isDenied) return;
    const record = this.#clients.recordOf(client, this.#column);
    record.denied++;
    if (record.denied === 1) record.firstDenied = request.at;
    record.lastDenied = request.at;
    if (hasSucceeded(request)) record.deniedSucceeded++;
    this.#loud.add(client, record.denied, request);
  }

  report(): Counts & { mostDenied: DeniedClient[]; timeline: Timeline } {
    const { startMs, stepSeconds, steps } = this.#axis;
    return {
      ...this.#counts.report(this.#clients, this.#column, "denied"),
      mostDenied: this.#loud.top(LISTED_CLIENTS).map((loud) => this.#deniedClient(loud)),
      timeline: {
        start: startMs === undefined ? undefined : new Date(startMs).toISOString(),
        stepSeconds,
        allowed: [...this.#allowed.subarray(0, steps)],
        denied: [...this.#denied.subarray(0, steps)],
      },
    };
  }

  #deniedClient(loud: LoudClient<string>): DeniedClient {
    const { denied, deniedSucceeded, error, firstDenied, lastDenied } = this.#clients.recordOf(
      loud.id,
      this.#column,
    );
    return {
      client: loud.client,
      requests: this.#clients.requestsOf(loud.id, this.#column),
      denied,
      deniedSucceeded: this.#hasStatuses ? deniedSucceeded : undefined,
      error,
      firstDenied: new Date(firstDenied).toISOString(),
      lastDenied: new Date(lastDenied).toISOString(),
      ...textsOf(loud),
    };
  }
}

type ComparedTotals = Pick<
  Comparison,
  "before" | "requests" | "clients" | "mostNewlyDenied" | "mostNewlyAllowed"
>;

/** Compares the verdicts of the configuration with those of another one, request by request. */
class ComparisonTotals {
  readonly #clients: ClientTable;
  readonly #counts: RequestCounts;
  readonly #hasStatuses: boolean;
  readonly #rules: readonly { readonly name: string; denied: number }[];
  readonly #newlyDenied = new LoudClients<string>();
  readonly #newlyAllowed = new LoudClients<string>();
  readonly #requests = {
    allowedByBoth: 0,
    deniedByBoth: 0,
    newlyDenied: 0,
    newlyDeniedSucceeded: 0,
    newlyAllowed: 0,
  };

  /**
   * @param rules the rules of the other configuration
   * @param clients the clients of the configuration, by their addresses
   */
  constructor(rules: readonly ReplayedRule[], clients: ClientTable, hasStatuses: boolean) {
    this.#counts = new RequestCounts(hasStatuses);
    this.#hasStatuses = hasStatuses;
    this.#rules = rules.map(({ name }) => ({ name, denied: 0 }));
    this.#clients = clients;
  }

  /** @param isDenied whether the configuration denies the request. Its own totals already have the request */
  add({ request, outcome, verdicts }: ReplayedRequest, isDenied: boolean): void {
    const wasDenied = outcome === "limited";
    this.#counts.add(request, wasDenied);
    for (const { rule, denied } of verdicts) {
      const counted = this.#rules[rule];
      if (denied && counted) counted.denied++;
    }
    const { ip } = request;
    const hasRecord = ip !== undefined && (wasDenied || isDenied);
    const record = hasRecord ? this.#recordOf(ip) : undefined;
    if (wasDenied && record) record.deniedBefore++;
    if (wasDenied === isDenied) this.#requests[isDenied ? "deniedByBoth" : "allowedByBoth"]++;
    else if (isDenied) this.#addNewlyDenied(request, record);
    else {
      this.#requests.newlyAllowed++;
      if (record) this.#newlyAllowed.add(ip as string, ++record.newlyAllowed, request);
    }
  }

  #addNewlyDenied(request: LogRequest, record: ClientRecord | undefined): void {
    const isLost = hasSucceeded(request);
    this.#requests.newlyDenied++;
    if (isLost) this.#requests.newlyDeniedSucceeded++;
    if (!record) return;
    if (isLost) record.newlyDeniedSucceeded++;
    this.#newlyDenied.add(request.ip as string, ++record.newlyDenied, request);
  }

  /** How many requests exceed a rule of the other configuration; undefined if it is not replayed. */
  overLimitBefore(rule: string): number | undefined {
    return this.#rules.find(({ name }) => name === rule)?.denied;
  }

  report(): ComparedTotals {
    const { newlyDenied, noLongerDenied, deniedMore, deniedLess } = this.#clients.sums(ALL_RULES);
    return {
      before: this.#counts.report(this.#clients, ALL_RULES, "deniedBefore"),
      requests: {
        ...this.#requests,
        newlyDeniedSucceeded: this.#known(this.#requests.newlyDeniedSucceeded),
      },
      clients: {
        ...{ newlyDenied, noLongerDenied, deniedMore, deniedLess },
        isEstimate: this.#clients.isDeniedEstimate,
      },
      mostNewlyDenied: this.#listed(this.#newlyDenied),
      mostNewlyAllowed: this.#listed(this.#newlyAllowed),
    };
  }

  #recordOf(address: string): ClientRecord {
    return this.#clients.recordOf(address, ALL_RULES);
  }

  #known(value: number): number | undefined {
    return this.#hasStatuses ? value : undefined;
  }

  #listed(clients: LoudClients<string>): ComparedClient[] {
    return clients.top(LISTED_CLIENTS).map((loud) => {
      const requests = this.#clients.requestsOf(loud.id, ALL_RULES);
      const { deniedBefore, denied, newlyDeniedSucceeded, error } = this.#recordOf(loud.id);
      return {
        ...{ client: loud.client, requests, deniedBefore, denied },
        newlyDeniedSucceeded: this.#known(newlyDeniedSucceeded),
        error,
        ...textsOf(loud),
      };
    });
  }
}

interface RuleTotals {
  readonly rule: ReplayedRule;
  mostOpen?: number;
  readonly totals: Totals;
  readonly windows: WorstWindows;
}

/** Adds up the verdicts of a replay, in bounded memory. */
export class ReplayTotals {
  readonly #axis = new TimeAxis();
  readonly #clients: ClientTable;
  readonly #all: Totals;
  readonly #rules: readonly RuleTotals[];
  #unmatched = 0;
  /** The comparison with another configuration; undefined without one. */
  readonly comparison: ComparisonTotals | undefined;

  /**
   * @param against the engine to compare with
   * @param hasStatuses whether the log states statuses
   */
  constructor(
    { rules }: Pick<ReplayEngine, "rules">,
    against?: Pick<ReplayEngine, "rules">,
    hasStatuses = true,
    maxClients = MAX_CLIENTS,
  ) {
    this.#clients = new ClientTable(rules.length + 1, maxClients);
    this.#rules = rules.map((rule, index) => ({
      rule,
      totals: new Totals(this.#axis, hasStatuses, this.#clients, index + 1),
      windows: new WorstWindows(),
    }));
    this.#all = new Totals(this.#axis, hasStatuses, this.#clients, ALL_RULES);
    this.comparison = against && new ComparisonTotals(against.rules, this.#clients, hasStatuses);
  }

  /**
   * Adds a request. The requests come in the order of their times.
   *
   * @param before the same request, decided by the other configuration
   */
  add({ request, outcome, verdicts }: ReplayedRequest, before?: ReplayedRequest): void {
    const isDenied = outcome === "limited";
    const step = this.#axis.stepOf(request.at);
    const { ip } = request;
    let ofAddress: number | undefined;
    for (const verdict of verdicts) {
      const { client, denied, counted, open } = verdict;
      const place = this.#clients.placeOf(client, counted);
      ofAddress = client === ip ? place : undefined;
      const rule = this.#rules[verdict.rule] as RuleTotals;
      rule.totals.add(request, denied, client, place, step);
      rule.windows.add(verdict);
      if (open !== undefined) rule.mostOpen = Math.max(rule.mostOpen ?? 0, open);
    }
    if (ip !== undefined) ofAddress ??= this.#clients.placeOf(ip);
    this.#all.add(request, isDenied, ip, ofAddress, step);
    if (outcome === "unmatched") this.#unmatched++;
    if (before) this.comparison?.add(before, isDenied);
  }

  report(): Pick<ReplayReport, "total" | "rules" | "timeline"> {
    const { timeline, ...total } = this.#all.report();
    return {
      total: { ...total, unmatched: this.#unmatched },
      rules: this.#rules.map(({ rule, totals, windows, mostOpen }) => ({
        ...rule,
        ...totals.report(),
        mostOpen,
        worstWindows: windows.top(),
      })),
      timeline,
    };
  }
}
