import type { LogRequest } from "../logs/log-request.ts";
import {
  ClientHash,
  ClientRanking,
  ClientTable,
  hasSucceeded,
  type RankedClient,
} from "../tally/client-ranking.ts";
import { RequestTexts } from "../tally/texts.ts";
import { type Series, TimeAxis } from "../tally/time-axis.ts";
import type {
  ComparedClient,
  Comparison,
  Counts,
  DeniedClient,
  Frequent,
  ReplayEngine,
  ReplayedRequest,
  ReplayedRule,
  ReplayReport,
  RuleReport,
  RuleVerdict,
  Timeline,
  TotalReport,
} from "./report.ts";
import { WorstWindows } from "./worst-windows.ts";

/** How many clients a list of a report has. */
const LISTED_CLIENTS = 20;
/** How many user agents, and how many paths, a client in a report has. */
const LISTED_TEXTS = 3;

/** The columns of {@link ClientCounts.denied}. */
const DENIED = 0;
const DENIED_BEFORE = 1;
const NEWLY_DENIED_SUCCEEDED = 2;

/** The part of a report about numbers of clients. */
type CountsOfClients = Pick<
  Counts,
  "clients" | "clientsDenied" | "isEstimate" | "isDeniedEstimate"
>;

interface Sizes {
  /** Up to this number of clients, numbers of clients are exact. */
  readonly maxClients?: number | undefined;
  /** How many clients are ranked. */
  readonly ranked: number;
  /** Shared by rankings that count the same requests. */
  readonly texts: RequestTexts;
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

  /** @param compared the rankings of a comparison, whose clients have to be counted under both configurations */
  constructor({ maxClients, ranked, texts }: Sizes, compared: readonly ClientRanking[] = []) {
    const ranking = new ClientRanking(ranked, texts);
    const all = [ranking, ...compared];
    this.#ranking = ranking;
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
  report(column = DENIED): CountsOfClients {
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
      deniedSucceeded: client.succeeded,
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
  #requests = 0;
  #denied = 0;
  #deniedSucceeded = 0;

  /** @param hasSucceeded whether the request is denied, and had succeeded when it was logged */
  add(isDenied: boolean, hasSucceeded: boolean): void {
    this.#requests++;
    if (isDenied) this.#denied++;
    if (hasSucceeded) this.#deniedSucceeded++;
  }

  report(clients: CountsOfClients): Counts {
    const [requests, denied] = [this.#requests, this.#denied];
    return {
      requests,
      allowed: requests - denied,
      denied,
      deniedShare: requests === 0 ? 0 : denied / requests,
      deniedSucceeded: this.#deniedSucceeded,
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
class ComparisonTally {
  readonly #rankings: ComparedRankings;
  readonly #clients: ClientCounts;
  readonly #counts = new RequestCounts();
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
  constructor(rules: readonly ReplayedRule[], clients: ClientCounts, rankings: ComparedRankings) {
    this.#rules = rules.map(({ name }) => ({ name, denied: 0 }));
    this.#clients = clients;
    this.#rankings = rankings;
  }

  /** Adds a request that the other configuration has decided. */
  addBefore({ request, outcome, verdicts }: ReplayedRequest): void {
    const isDenied = outcome === "limited";
    this.#counts.add(isDenied, isDenied && hasSucceeded(request));
    for (const { rule, denied } of verdicts) {
      const tally = this.#rules[rule];
      if (denied && tally) tally.denied++;
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
      requests: { ...this.#requests },
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
      newlyDeniedSucceeded: denied.countOf(client, NEWLY_DENIED_SUCCEEDED),
      error: client.error,
      ...textsOf(client),
    };
  }
}

/** Allowed and denied requests over time. */
class RequestSeries {
  readonly #axis: TimeAxis;
  readonly #allowed: Series;
  readonly #denied: Series;

  constructor(axis: TimeAxis) {
    this.#axis = axis;
    this.#allowed = axis.series();
    this.#denied = axis.series();
  }

  /** @param step the step of the request's time */
  add(step: number, isDenied: boolean): void {
    const series = isDenied ? this.#denied : this.#allowed;
    series[step] = (series[step] as number) + 1;
  }

  report(): Timeline {
    const { startMs, stepSeconds, steps } = this.#axis;
    return {
      start: startMs === undefined ? undefined : new Date(startMs).toISOString(),
      stepSeconds,
      allowed: [...this.#allowed.subarray(0, steps)],
      denied: [...this.#denied.subarray(0, steps)],
    };
  }
}

/** How many clients of a rule are ranked. The number of denied requests / this number bounds their error. */
const RANKED_OF_RULE = 64;

/** Adds up the verdicts of one rule. */
class RuleTally {
  readonly #rule: ReplayedRule;
  readonly #counts = new RequestCounts();
  readonly #clients: ClientCounts;
  readonly #series: RequestSeries;
  readonly #windows = new WorstWindows();

  /**
   * @param axis the steps of all timelines
   * @param options `maxClients`: up to this number of clients, numbers of clients are exact
   */
  constructor(
    rule: ReplayedRule,
    axis: TimeAxis,
    { texts, maxClients }: { texts: RequestTexts; maxClients: number | undefined },
  ) {
    this.#rule = rule;
    this.#clients = new ClientCounts({ maxClients, ranked: RANKED_OF_RULE, texts });
    this.#series = new RequestSeries(axis);
  }

  /**
   * @param step the step of the request's time
   * @param hash the hash of the verdict's client
   */
  add(verdict: RuleVerdict, request: LogRequest, step: number, hash: ClientHash): void {
    this.#counts.add(verdict.denied, verdict.denied && hasSucceeded(request));
    this.#series.add(step, verdict.denied);
    this.#windows.add(verdict, request.at);
    this.#clients.seen.increment(hash, 0);
    if (verdict.denied) this.#clients.addDenied(verdict.client, hash, request);
  }

  report(): RuleReport {
    const { name, mode, key, limits, match } = this.#rule;
    return {
      ...{ name, mode, key, limits, match },
      ...this.#counts.report(this.#clients.report()),
      worstWindows: this.#windows.top(),
      mostDenied: this.#clients.mostDenied(),
      timeline: this.#series.report(),
    };
  }
}

/** How many clients are ranked. The number of denied requests / this number bounds their error. */
const RANKED = 256;
/** With more rules, the tables of clients of each rule are smaller, so that they need at most 200 MB. */
const MANY_RULES = 16;
const MAX_CLIENTS_OF_MANY_RULES = 16_384;

/** Adds up the verdicts of a replay, in bounded memory. */
export class ReplayTally {
  readonly #axis = new TimeAxis();
  readonly #counts = new RequestCounts();
  readonly #clients: ClientCounts;
  readonly #series = new RequestSeries(this.#axis);
  readonly #rules: readonly RuleTally[];
  readonly #hash = new ClientHash();
  readonly #hashOfRule = new ClientHash();
  #unmatched = 0;
  /** The comparison with another configuration; undefined without one. */
  readonly comparison: ComparisonTally | undefined;

  /**
   * @param engine the engine whose verdicts are added up
   * @param against the engine to compare with
   * @param exactClients up to this number of clients, numbers of clients are exact. By default, it depends on the rules
   */
  constructor(
    { rules }: Pick<ReplayEngine, "rules">,
    against?: Pick<ReplayEngine, "rules">,
    exactClients?: number,
  ) {
    const isMany = rules.length > MANY_RULES;
    const maxClients = exactClients ?? (isMany ? MAX_CLIENTS_OF_MANY_RULES : undefined);
    const texts = new RequestTexts();
    this.#rules = rules.map((rule) => new RuleTally(rule, this.#axis, { texts, maxClients }));
    const rankings = new ComparedRankings();
    const { newlyDenied, newlyAllowed } = rankings;
    this.#clients = new ClientCounts(
      { ranked: RANKED, texts, maxClients: exactClients },
      against ? [newlyDenied, newlyAllowed] : [],
    );
    this.comparison = against && new ComparisonTally(against.rules, this.#clients, rankings);
  }

  /** Prepares for requests from this time on. */
  begin(firstAt: number): void {
    this.#axis.stepOf(firstAt);
  }

  /** Adds a request that the configuration has decided. */
  add({ request, outcome, verdicts }: ReplayedRequest): void {
    const { ip, at } = request;
    const hash = ip === undefined ? undefined : this.#hash.set(ip);
    const isDenied = outcome === "limited";
    const step = this.#axis.stepOf(at);
    this.#counts.add(isDenied, isDenied && hasSucceeded(request));
    this.#series.add(step, isDenied);
    if (outcome === "unmatched") this.#unmatched++;
    if (hash !== undefined) this.#clients.seen.increment(hash, 0);
    if (hash !== undefined && ip !== undefined && isDenied) {
      this.#clients.addDenied(ip, hash, request);
    }
    for (const verdict of verdicts) {
      const ofRule = verdict.client === ip ? this.#hash : this.#hashOfRule.set(verdict.client);
      this.#rules[verdict.rule]?.add(verdict, request, step, ofRule);
    }
    this.comparison?.add(request, isDenied);
  }

  report(): Pick<ReplayReport, "total" | "rules" | "timeline"> {
    const total: TotalReport = {
      ...this.#counts.report(this.#clients.report()),
      unmatched: this.#unmatched,
      mostDenied: this.#clients.mostDenied(),
    };
    return {
      total,
      rules: this.#rules.map((rule) => rule.report()),
      timeline: this.#series.report(),
    };
  }
}
