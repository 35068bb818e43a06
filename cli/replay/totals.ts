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

/** How many clients a list of a report has. */
const LISTED_CLIENTS = 20;
/** How many user agents, and how many paths, a client in a report has. */
const LISTED_TEXTS = 3;

/** How many addresses are counted exactly, and how many clients under all rules together. Each takes 170 bytes. */
const MAX_CLIENTS = 500_000;

function textsOf({ userAgents, paths }: LoudClient<string>): {
  userAgents: readonly Frequent[];
  paths: readonly Frequent[];
} {
  return { userAgents: userAgents.top(LISTED_TEXTS), paths: paths.top(LISTED_TEXTS) };
}

/** Numbers of requests. */
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

  report(clients: ClientTable, clientsDenied: number): Counts {
    const [requests, denied] = [this.#requests, this.#denied];
    return {
      requests,
      allowed: requests - denied,
      denied,
      deniedShare: requests === 0 ? 0 : denied / requests,
      deniedSucceeded: this.#hasStatuses ? this.#deniedSucceeded : undefined,
      clients: clients.sums().clients,
      clientsDenied,
      isEstimate: clients.isEstimate,
      isDeniedEstimate: clients.isDeniedEstimate,
    };
  }
}

/** Adds up requests by their verdicts: those of one rule, or all of them. */
class Totals {
  readonly clients: ClientTable;
  readonly #hasStatuses: boolean;
  readonly #counts: RequestCounts;
  readonly #loud = new LoudClients<string>();
  readonly #axis: TimeAxis;
  readonly #allowed: Uint32Array;
  readonly #denied: Uint32Array;

  constructor(axis: TimeAxis, hasStatuses: boolean, maxClients: number) {
    this.clients = new ClientTable(maxClients);
    this.#hasStatuses = hasStatuses;
    this.#counts = new RequestCounts(hasStatuses);
    this.#axis = axis;
    this.#allowed = axis.series();
    this.#denied = axis.series();
  }

  /**
   * @param client undefined if it is unknown
   * @param step the step of the request's time
   */
  add(request: LogRequest, isDenied: boolean, client: string | undefined, step: number): void {
    this.#counts.add(request, isDenied);
    const series = isDenied ? this.#denied : this.#allowed;
    series[step] = (series[step] as number) + 1;
    if (client === undefined) return;
    const record = this.clients.of(client);
    record.requests++;
    if (!isDenied) return;
    record.denied++;
    if (record.denied === 1) record.firstDenied = request.at;
    record.lastDenied = request.at;
    if (hasSucceeded(request)) record.deniedSucceeded++;
    this.#loud.add(client, record.denied, request);
  }

  report(): Counts & { mostDenied: DeniedClient[]; timeline: Timeline } {
    const { startMs, stepSeconds, steps } = this.#axis;
    return {
      ...this.#counts.report(this.clients, this.clients.sums().denied),
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
    const { requests, denied, deniedSucceeded, error, firstDenied, lastDenied } = this.clients.of(
      loud.id,
    );
    return {
      client: loud.client,
      requests,
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

  /** @param isDenied whether the configuration denies the request, which is counted already */
  add({ request, outcome, verdicts }: ReplayedRequest, isDenied: boolean): void {
    const wasDenied = outcome === "limited";
    this.#counts.add(request, wasDenied);
    for (const { rule, denied } of verdicts) {
      const counted = this.#rules[rule];
      if (denied && counted) counted.denied++;
    }
    const { ip } = request;
    const record = ip === undefined ? undefined : this.#clients.of(ip);
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
    const { newlyDenied, noLongerDenied, deniedMore, deniedLess, deniedBefore } =
      this.#clients.sums();
    return {
      before: this.#counts.report(this.#clients, deniedBefore),
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

  #known(value: number): number | undefined {
    return this.#hasStatuses ? value : undefined;
  }

  #listed(clients: LoudClients<string>): ComparedClient[] {
    return clients.top(LISTED_CLIENTS).map((loud) => {
      const { requests, deniedBefore, denied, newlyDeniedSucceeded, error } = this.#clients.of(
        loud.id,
      );
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
  readonly totals: Totals;
  readonly windows: WorstWindows;
}

/** Adds up the verdicts of a replay, in bounded memory. */
export class ReplayTotals {
  readonly #axis = new TimeAxis();
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
    const maxOfRule = Math.ceil(maxClients / Math.max(1, rules.length));
    this.#rules = rules.map((rule) => ({
      rule,
      totals: new Totals(this.#axis, hasStatuses, maxOfRule),
      windows: new WorstWindows(),
    }));
    this.#all = new Totals(this.#axis, hasStatuses, maxClients);
    this.comparison =
      against && new ComparisonTotals(against.rules, this.#all.clients, hasStatuses);
  }

  /**
   * Adds a request. The requests come in the order of their times.
   *
   * @param before the same request, decided by the other configuration
   */
  add({ request, outcome, verdicts }: ReplayedRequest, before?: ReplayedRequest): void {
    const isDenied = outcome === "limited";
    const step = this.#axis.stepOf(request.at);
    this.#all.add(request, isDenied, request.ip, step);
    if (outcome === "unmatched") this.#unmatched++;
    for (const verdict of verdicts) {
      const { totals, windows } = this.#rules[verdict.rule] as RuleTotals;
      totals.add(request, verdict.denied, verdict.client, step);
      windows.add(verdict);
    }
    if (before) this.comparison?.add(before, isDenied);
  }

  report(): Pick<ReplayReport, "total" | "rules" | "timeline"> {
    const { timeline, ...total } = this.#all.report();
    return {
      total: { ...total, unmatched: this.#unmatched },
      rules: this.#rules.map(({ rule, totals, windows }) => ({
        ...rule,
        ...totals.report(),
        worstWindows: windows.top(),
      })),
      timeline,
    };
  }
}
