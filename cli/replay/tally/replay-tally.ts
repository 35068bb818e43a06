import type { LogRequest } from "../../logs/log-request.ts";
import { ClientHash } from "../../tally/client-hash.ts";
import { hasSucceeded } from "../../tally/client-ranking.ts";
import { RequestTexts } from "../../tally/request-texts.ts";
import { TimeAxis } from "../../tally/time-axis.ts";
import type { ReplayEngine, ReplayedRequest, RuleVerdict, VerdictTally } from "../replay-engine.ts";
import type { ReplayReport, TotalReport } from "../report.ts";
import { ClientCounts } from "./client-counts.ts";
import { ComparedRankings, ComparisonTally } from "./comparison-tally.ts";
import { RequestCounts } from "./request-counts.ts";
import { RequestSeries } from "./request-series.ts";
import { RuleTally } from "./rule-tally.ts";

/** How many clients are ranked. The number of denied requests / this number bounds their error. */
const RANKED = 256;
/** With more rules, the tables of clients of each rule are smaller, so that they need at most 200 MB. */
const MANY_RULES = 16;
const MAX_CLIENTS_OF_MANY_RULES = 16_384;

/** Adds up the verdicts of a replay, in bounded memory. */
export class ReplayTally implements VerdictTally {
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
    const step = this.addOutcome(outcome, at, hash, request);
    for (const verdict of verdicts) {
      const ofRule = verdict.client === ip ? this.#hash : this.#hashOfRule.set(verdict.client);
      this.addVerdict(verdict, at, step, ofRule, request);
    }
    this.comparison?.add(request, outcome === "limited");
  }

  get exactClients(): number {
    const tables = [this.#clients, ...this.#rules];
    return Math.min(...tables.map(({ exactClients }) => exactClients));
  }

  addSeen(hash: ClientHash, requests: number): void {
    this.#clients.seen.increment(hash, 0, requests);
  }

  addSeenUnder(rule: number, hash: ClientHash, requests: number): void {
    this.#rules[rule]?.addSeen(hash, requests);
  }

  addOutcome(
    outcome: ReplayedRequest["outcome"],
    at: number,
    hash: ClientHash | undefined,
    request: LogRequest | undefined,
  ): number {
    const denied = outcome === "limited" ? request : undefined;
    const step = this.#axis.stepOf(at);
    this.#counts.add(denied !== undefined, denied !== undefined && hasSucceeded(denied));
    this.#series.add(step, denied !== undefined);
    if (outcome === "unmatched") this.#unmatched++;
    if (hash === undefined) return step;
    this.#clients.seen.increment(hash, 0);
    if (denied?.ip !== undefined) this.#clients.addDenied(denied.ip, hash, denied);
    return step;
  }

  addVerdict(
    verdict: RuleVerdict,
    at: number,
    step: number,
    hash: ClientHash | undefined,
    request: LogRequest | undefined,
  ): void {
    this.#rules[verdict.rule]?.add(verdict, at, step, hash, request);
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
