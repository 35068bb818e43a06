import type { LogRequest } from "../../logs/log-request.ts";
import { ClientHash } from "../../tally/client-hash.ts";
import { ClientRanking, hasSucceeded, type RankedClient } from "../../tally/client-ranking.ts";
import type { ReplayedRequest, ReplayedRule } from "../replay-engine.ts";
import type { ComparedClient, Comparison } from "../report.ts";
import {
  type ClientCounts,
  DENIED,
  DENIED_BEFORE,
  LISTED_CLIENTS,
  NEWLY_DENIED_SUCCEEDED,
  textsOf,
} from "./client-counts.ts";
import { RequestCounts } from "./request-counts.ts";

/** How many clients each of the two lists ranks. */
const RANKED = 128;

/** The clients that the two configurations treat differently. */
export class ComparedRankings {
  readonly newlyDenied = new ClientRanking(RANKED);
  readonly newlyAllowed = new ClientRanking(RANKED);
}

/** Compares the verdicts of the configuration with those of another one, request by request. */
export class ComparisonTally {
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
