import type { LogRequest } from "../../logs/log-request.ts";
import { ClientHash } from "../../tally/client-hash.ts";
import { hasSucceeded } from "../../tally/client-ranking.ts";
import { RequestTexts } from "../../tally/request-texts.ts";
import { TimeAxis } from "../../tally/time-axis.ts";
import type { ReplayEngine, ReplayedRequest } from "../replay-engine.ts";
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

  constructor({ rules }: Pick<ReplayEngine, "rules">, against?: Pick<ReplayEngine, "rules">) {
    const maxClients = rules.length > MANY_RULES ? MAX_CLIENTS_OF_MANY_RULES : undefined;
    const texts = new RequestTexts();
    this.#rules = rules.map((rule) => new RuleTally(rule, this.#axis, { texts, maxClients }));
    const rankings = new ComparedRankings();
    const { newlyDenied, newlyAllowed } = rankings;
    this.#clients = new ClientCounts(
      { ranked: RANKED, texts },
      against ? [newlyDenied, newlyAllowed] : [],
    );
    this.comparison = against && new ComparisonTally(against.rules, this.#clients, rankings);
  }

  /** Prepares for requests that will be decided, in the order of their times. */
  begin(requests: readonly LogRequest[]): void {
    const first = requests[0];
    if (first) this.#axis.stepOf(first.at);
  }

  /** Adds a request that the configuration has decided. */
  add({ request, outcome, verdicts }: ReplayedRequest): void {
    const { ip } = request;
    const isDenied = outcome === "limited";
    const step = this.#axis.stepOf(request.at);
    this.#counts.add(isDenied, isDenied && hasSucceeded(request));
    this.#series.add(step, isDenied);
    if (outcome === "unmatched") this.#unmatched++;
    if (ip !== undefined) {
      this.#clients.seen.increment(this.#hash.set(ip), 0);
      if (isDenied) this.#clients.addDenied(ip, this.#hash, request);
    }
    for (const verdict of verdicts) {
      const hash = verdict.client === ip ? this.#hash : this.#hashOfRule.set(verdict.client);
      this.#rules[verdict.rule]?.add(verdict, request, step, hash);
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
