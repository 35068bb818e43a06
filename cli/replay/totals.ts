import { RequestTexts } from "../logs/frequent-texts.ts";
import { hasSucceeded, type LogRequest } from "../logs/log-request.ts";
import { ClientHash, ClientRanking, ClientTable, type RankedClient } from "./client-ranking.ts";
import type { ReplayEngine } from "./engine.ts";
import type { ReplayedRequest } from "./groups.ts";
import type {
  ComparedClient,
  Comparison,
  Counts,
  DeniedClient,
  Frequent,
  ReplayedRule,
  ReplayReport,
  RuleReport,
  Timeline,
  TotalReport,
} from "./report.ts";
import { type Series, TimeAxis } from "./time-axis.ts";
import { WorstWindows } from "./worst-windows.ts";

/** How many clients a list of a report has. */
const LISTED_CLIENTS = 20;
/** How many user agents, and how many paths, a client in a report has. */
const LISTED_TEXTS = 3;

/** The columns of {@link ClientCounts.denied}. */
const DENIED = 0;
const DENIED_BEFORE = 1;
const NEWLY_DENIED_SUCCEEDED = 2;

/** What the totals of one replay share. */
interface Shared {
  /** The steps of all timelines. */
  readonly axis: TimeAxis;
  readonly texts: RequestTexts;
  /** Without statuses, it is unknown which requests had succeeded. */
  readonly hasStatuses: boolean;
}

interface Sizes {
  /** Up to this number of clients, numbers of clients are exact. */
  readonly maxClients: number | undefined;
  /** How many clients are ranked. */
  readonly ranked: number;
}

/** Counts clients and their requests, and ranks the clients with denied requests. */
class ClientCounts {
  /** The requests of all clients, in one column. */
  readonly seen: ClientTable;
  /**
   * The denied requests of clients that have any. They have a table of their own, so that few denied clients among
   * very many are counted exactly.
   */
  readonly denied: ClientTable;
  readonly #ranking: ClientRanking;
  readonly #hasStatuses: boolean;

  /** @param compared the rankings of a comparison, whose clients have to be counted under both configurations */
  constructor(
    { texts, hasStatuses }: Shared,
    { maxClients, ranked }: Sizes,
    compared: readonly ClientRanking[] = [],
  ) {
    const ranking = new ClientRanking(ranked, texts);
    const all = [ranking, ...compared];
    this.#ranking = ranking;
    this.#hasStatuses = hasStatuses;
    this.seen = new ClientTable(1, () => entriesOf(all), maxClients);
    const columns = compared.length === 0 ? 1 : 3;
    this.denied = new ClientTable(columns, () => entriesOf(compared), maxClients);
  }

  addDenied(client: string, hash: ClientHash, request: LogRequest): void {
    this.denied.increment(hash, DENIED);
    const isRanked = this.#ranking.add(client, hash, request);
    if (isRanked && this.seen.isEstimate) this.seen.pin(hash);
  }

  /** @param column the configuration of whose denied requests a client has to have any */
  report(
    column = DENIED,
  ): Pick<Counts, "clients" | "clientsDenied" | "isEstimate" | "isDeniedEstimate"> {
    return {
      clients: this.seen.clients(),
      clientsDenied: this.denied.clients((...counts) => (counts[column] as number) > 0),
      isEstimate: this.seen.isEstimate,
      isDeniedEstimate: this.denied.isEstimate,
    };
  }

  /** Returns the clients with the most denied requests. */
  mostDenied(): DeniedClient[] {
    return this.#ranking.top(LISTED_CLIENTS).map((client) => ({
      client: client.client,
      requests: this.requestsOf(client),
      denied: client.count - client.error,
      deniedSucceeded: this.#hasStatuses ? client.succeeded : undefined,
      error: client.error,
      firstDenied: new Date(client.first).toISOString(),
      lastDenied: new Date(client.last).toISOString(),
      ...textsOf(client),
    }));
  }

  /**
   * Returns the number of a client's requests. Among very many clients, a client may not have been counted from its
   * first request on, but at least its ranked requests were.
   */
  requestsOf(client: RankedClient): number {
    return Math.max(this.seen.countOf(client, 0), client.count - client.error);
  }
}

/** Returns the most frequent user agents and paths of a client. */
function textsOf({ userAgents, paths }: RankedClient): {
  userAgents: readonly Frequent[];
  paths: readonly Frequent[];
} {
  return {
    // A request without a user agent has an empty text.
    userAgents: userAgents
      .top(LISTED_TEXTS + 1)
      .filter(({ text }) => text !== "")
      .slice(0, LISTED_TEXTS),
    paths: paths.top(LISTED_TEXTS),
  };
}

function entriesOf(rankings: readonly ClientRanking[]): RankedClient[] {
  return rankings.flatMap((ranking) => [...ranking.entries()]);
}

/** Numbers of requests. */
class RequestCounts {
  readonly #hasStatuses: boolean;
  #requests = 0;
  #denied = 0;
  #deniedSucceeded = 0;

  constructor({ hasStatuses }: Shared) {
    this.#hasStatuses = hasStatuses;
  }

  add(request: LogRequest, isDenied: boolean): void {
    this.#requests++;
    if (!isDenied) return;
    this.#denied++;
    if (hasSucceeded(request)) this.#deniedSucceeded++;
  }

  report(clients: ReturnType<ClientCounts["report"]>): Counts {
    const [requests, denied] = [this.#requests, this.#denied];
    return {
      requests,
      allowed: requests - denied,
      denied,
      deniedShare: requests === 0 ? 0 : denied / requests,
      deniedSucceeded: this.#hasStatuses ? this.#deniedSucceeded : undefined,
      ...clients,
    };
  }
}

/** How many clients each of the two lists ranks. */
const COMPARED = 128;

/** The clients that the two configurations treat differently. */
class ComparedRankings {
  readonly newlyDenied = new ClientRanking(COMPARED);
  readonly newlyAllowed = new ClientRanking(COMPARED);
}

/** Compares the verdicts of the configuration with those of another one, request by request. */
class ComparisonTotals {
  readonly #rankings: ComparedRankings;
  readonly #clients: ClientCounts;
  readonly #counts: RequestCounts;
  readonly #hasStatuses: boolean;
  readonly #rules: readonly { readonly name: string; denied: number }[];
  readonly #hash = new ClientHash();
  /** The verdicts on requests that only one of the configurations has decided yet. */
  readonly #undecided = new Map<LogRequest, boolean>();
  readonly #requests = {
    allowedByBoth: 0,
    deniedByBoth: 0,
    newlyDenied: 0,
    newlyDeniedSucceeded: 0,
    newlyAllowed: 0,
  };

  /**
   * @param rules the rules of the other configuration
   * @param clients the clients of the configuration, counted with the same rankings
   */
  constructor(
    shared: Shared,
    rules: readonly ReplayedRule[],
    clients: ClientCounts,
    rankings: ComparedRankings,
  ) {
    this.#counts = new RequestCounts(shared);
    this.#hasStatuses = shared.hasStatuses;
    this.#rules = rules.map(({ name }) => ({ name, denied: 0 }));
    this.#clients = clients;
    this.#rankings = rankings;
  }

  /** Adds a request that the other configuration has decided. */
  addBefore({ request, outcome, verdicts }: ReplayedRequest): void {
    const isDenied = outcome === "limited";
    this.#counts.add(request, isDenied);
    for (const { rule, denied } of verdicts) {
      const counted = this.#rules[rule];
      if (denied && counted) counted.denied++;
    }
    if (isDenied && request.ip !== undefined) {
      this.#clients.denied.increment(this.#hash.set(request.ip), DENIED_BEFORE);
    }
    const isDeniedNow = this.#other(request, isDenied);
    if (isDeniedNow !== undefined) this.#compare(request, isDenied, isDeniedNow);
  }

  /** Adds a request that the configuration has decided. */
  add(request: LogRequest, isDenied: boolean): void {
    const wasDenied = this.#other(request, isDenied);
    if (wasDenied !== undefined) this.#compare(request, wasDenied, isDenied);
  }

  /** Returns the verdict of the other side; undefined if this one is the first, which is then kept. */
  #other(request: LogRequest, isDenied: boolean): boolean | undefined {
    const other = this.#undecided.get(request);
    if (other === undefined) this.#undecided.set(request, isDenied);
    else this.#undecided.delete(request);
    return other;
  }

  #compare(request: LogRequest, wasDenied: boolean, isDenied: boolean): void {
    if (wasDenied === isDenied) {
      this.#requests[isDenied ? "deniedByBoth" : "allowedByBoth"]++;
      return;
    }
    const isLost = isDenied && hasSucceeded(request);
    this.#requests[isDenied ? "newlyDenied" : "newlyAllowed"]++;
    if (isLost) this.#requests.newlyDeniedSucceeded++;
    const { ip } = request;
    if (ip === undefined) return;
    const { denied, seen } = this.#clients;
    const hash = this.#hash.set(ip);
    const ranking = this.#rankings[isDenied ? "newlyDenied" : "newlyAllowed"];
    const isRanked = ranking.add(ip, hash, request);
    if (isRanked && denied.isEstimate) denied.pin(hash);
    if (isRanked && seen.isEstimate) seen.pin(hash);
    if (isLost) denied.increment(hash, NEWLY_DENIED_SUCCEEDED);
  }

  /** How many requests exceed a rule of the other configuration; undefined if it is not replayed. */
  overLimitBefore(rule: string): number | undefined {
    return this.#rules.find(({ name }) => name === rule)?.denied;
  }

  report(): Pick<
    Comparison,
    "before" | "requests" | "clients" | "mostNewlyDenied" | "mostNewlyAllowed"
  > {
    const { denied } = this.#clients;
    const clientsWith = (holds: (now: number, before: number) => boolean) =>
      denied.clients((now = 0, before = 0) => holds(now, before));
    return {
      before: this.#counts.report(this.#clients.report(DENIED_BEFORE)),
      requests: {
        ...this.#requests,
        newlyDeniedSucceeded: this.#known(this.#requests.newlyDeniedSucceeded),
      },
      clients: {
        newlyDenied: clientsWith((now, before) => now > 0 && before === 0),
        noLongerDenied: clientsWith((now, before) => now === 0 && before > 0),
        deniedMore: clientsWith((now, before) => before > 0 && now > before),
        deniedLess: clientsWith((now, before) => now > 0 && now < before),
        isEstimate: denied.isEstimate,
      },
      mostNewlyDenied: this.#listed(this.#rankings.newlyDenied),
      mostNewlyAllowed: this.#listed(this.#rankings.newlyAllowed),
    };
  }

  #known(value: number): number | undefined {
    return this.#hasStatuses ? value : undefined;
  }

  #listed(ranking: ClientRanking): ComparedClient[] {
    return ranking.top(LISTED_CLIENTS).map((client) => this.#compared(client));
  }

  #compared(client: RankedClient): ComparedClient {
    const { denied } = this.#clients;
    return {
      client: client.client,
      requests: this.#clients.requestsOf(client),
      deniedBefore: denied.countOf(client, DENIED_BEFORE),
      denied: denied.countOf(client, DENIED),
      newlyDeniedSucceeded: this.#known(denied.countOf(client, NEWLY_DENIED_SUCCEEDED)),
      error: client.error,
      ...textsOf(client),
    };
  }
}

/** Adds up requests by their verdicts: those of one rule, or all of them. */
class Totals {
  readonly clients: ClientCounts;
  readonly #axis: TimeAxis;
  readonly #counts: RequestCounts;
  readonly #allowed: Series;
  readonly #denied: Series;

  constructor(shared: Shared, clients: ClientCounts) {
    this.clients = clients;
    this.#axis = shared.axis;
    this.#counts = new RequestCounts(shared);
    this.#allowed = shared.axis.series();
    this.#denied = shared.axis.series();
  }

  /**
   * @param client undefined if it is unknown
   * @param hash the hash of the client
   * @param step the step of the request's time
   */
  add(
    request: LogRequest,
    isDenied: boolean,
    client: string | undefined,
    hash: ClientHash,
    step: number,
  ): void {
    this.#counts.add(request, isDenied);
    const series = isDenied ? this.#denied : this.#allowed;
    series[step] = (series[step] as number) + 1;
    if (client === undefined) return;
    this.clients.seen.increment(hash, 0);
    if (isDenied) this.clients.addDenied(client, hash, request);
  }

  counts(): Counts & Pick<TotalReport, "mostDenied"> {
    const mostDenied = this.clients.mostDenied();
    return { ...this.#counts.report(this.clients.report()), mostDenied };
  }

  timeline(): Timeline {
    const { startMs, stepSeconds, steps } = this.#axis;
    return {
      start: startMs === undefined ? undefined : new Date(startMs).toISOString(),
      stepSeconds,
      allowed: [...this.#allowed.subarray(0, steps)],
      denied: [...this.#denied.subarray(0, steps)],
    };
  }
}

/** The totals of one rule. */
interface RuleTotals {
  readonly rule: ReplayedRule;
  readonly totals: Totals;
  readonly windows: WorstWindows;
}

/** How many clients of a rule are ranked. The number of denied requests / this number bounds their error. */
const RANKED_OF_RULE = 64;
/** How many clients are ranked. The number of denied requests / this number bounds their error. */
const RANKED = 256;
/** With more rules, the tables of clients of each rule are smaller, so that they need at most 200 MB. */
const MANY_RULES = 16;
const MAX_CLIENTS_OF_MANY_RULES = 16_384;

/** Adds up the verdicts of a replay, in bounded memory. */
export class ReplayTotals {
  readonly #axis = new TimeAxis();
  readonly #all: Totals;
  readonly #rules: readonly RuleTotals[];
  readonly #hash = new ClientHash();
  readonly #hashOfRule = new ClientHash();
  #unmatched = 0;
  /** The comparison with another configuration; undefined without one. */
  readonly comparison: ComparisonTotals | undefined;

  /**
   * @param engine the engine whose verdicts are added up
   * @param against the engine to compare with
   * @param hasStatuses whether the log states statuses
   */
  constructor(
    { rules }: Pick<ReplayEngine, "rules">,
    against?: Pick<ReplayEngine, "rules">,
    hasStatuses = true,
  ) {
    const shared: Shared = { axis: this.#axis, texts: new RequestTexts(), hasStatuses };
    const maxClients = rules.length > MANY_RULES ? MAX_CLIENTS_OF_MANY_RULES : undefined;
    this.#rules = rules.map((rule) => ({
      rule,
      totals: new Totals(shared, new ClientCounts(shared, { ranked: RANKED_OF_RULE, maxClients })),
      windows: new WorstWindows(),
    }));
    const rankings = new ComparedRankings();
    const compared = against ? [rankings.newlyDenied, rankings.newlyAllowed] : [];
    const clients = new ClientCounts(shared, { ranked: RANKED, maxClients: undefined }, compared);
    this.#all = new Totals(shared, clients);
    this.comparison = against && new ComparisonTotals(shared, against.rules, clients, rankings);
  }

  /** Prepares for requests from this time on. */
  begin(firstAt: number): void {
    this.#axis.stepOf(firstAt);
  }

  /** Adds a request that the configuration has decided. */
  add({ request, outcome, verdicts }: ReplayedRequest): void {
    const { ip, at } = request;
    const isDenied = outcome === "limited";
    const step = this.#axis.stepOf(at);
    if (ip !== undefined) this.#hash.set(ip);
    this.#all.add(request, isDenied, ip, this.#hash, step);
    if (outcome === "unmatched") this.#unmatched++;
    for (const verdict of verdicts) {
      const { client, denied } = verdict;
      const { totals, windows } = this.#rules[verdict.rule] as RuleTotals;
      const hash = client === ip ? this.#hash : this.#hashOfRule.set(client);
      totals.add(request, denied, client, hash, step);
      windows.add(verdict, at);
    }
    this.comparison?.add(request, isDenied);
  }

  report(): Pick<ReplayReport, "total" | "rules" | "timeline"> {
    return {
      total: { ...this.#all.counts(), unmatched: this.#unmatched },
      rules: this.#rules.map(({ rule, totals, windows }): RuleReport => {
        return {
          ...rule,
          ...totals.counts(),
          worstWindows: windows.top(),
          timeline: totals.timeline(),
        };
      }),
      timeline: this.#all.timeline(),
    };
  }
}
