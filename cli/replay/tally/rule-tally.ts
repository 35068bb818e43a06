import type { LogRequest } from "../../logs/log-request.ts";
import type { ClientHash } from "../../tally/client-hash.ts";
import { hasSucceeded } from "../../tally/client-ranking.ts";
import type { RequestTexts } from "../../tally/request-texts.ts";
import type { TimeAxis } from "../../tally/time-axis.ts";
import type { ReplayedRule, RuleVerdict } from "../replay-engine.ts";
import type { RuleReport } from "../report.ts";
import { ClientCounts } from "./client-counts.ts";
import { RequestCounts } from "./request-counts.ts";
import { RequestSeries } from "./request-series.ts";
import { WorstWindows } from "./worst-windows.ts";

/** How many clients of a rule are ranked. The number of denied requests / this number bounds their error. */
const RANKED = 64;

/** Adds up the verdicts of one rule. */
export class RuleTally {
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
    this.#clients = new ClientCounts({ maxClients, ranked: RANKED, texts });
    this.#series = new RequestSeries(axis);
  }

  /**
   * @param at the time of the request
   * @param step the step of that time
   * @param hash the hash of the verdict's client; undefined if the request is not denied, and `addSeen` counts it
   * @param request may be undefined if no rule denies it
   */
  add(
    verdict: RuleVerdict,
    at: number,
    step: number,
    hash: ClientHash | undefined,
    request: LogRequest | undefined,
  ): void {
    const denied = verdict.denied ? request : undefined;
    this.#counts.add(denied !== undefined, denied !== undefined && hasSucceeded(denied));
    this.#series.add(step, denied !== undefined);
    this.#windows.add(verdict, at);
    if (hash === undefined) return;
    this.#clients.seen.increment(hash, 0);
    if (denied) this.#clients.addDenied(verdict.client, hash, denied);
  }

  /** Up to this number of clients, their numbers are exact. */
  get exactClients(): number {
    return this.#clients.exactClients;
  }

  /** Counts requests of a client. */
  addSeen(hash: ClientHash, requests: number): void {
    this.#clients.seen.increment(hash, 0, requests);
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
