import type { RecordableHistogram } from "node:perf_hooks";
import { createLatencyHistogram, recordMs } from "../bench/load/latency.ts";
import { Ledger } from "./ledger.ts";
import type { Answer } from "./load.ts";
import { LOCAL_POLICY, POLICIES } from "./rules.ts";
import type { OutgoingRequest } from "./traffic.ts";

/** The state of the store while requests are sent. */
export interface Phase {
  readonly name: string;
  /** Whether the store fails, or failed a moment ago. If so, requests may stay undecided. */
  readonly isDisturbed: boolean;
}

/** The totals of all phases that have the same name. */
export interface PhaseTotals {
  requests: number;
  readonly statuses: Record<number, number>;
  /** Requests that Weir admitted although the store did not decide them. */
  undecided: number;
  /** The number of answers that took longer than the deadline of the {@link Inspector}. */
  late: number;
  readonly latency: RecordableHistogram;
  durationMs: number;
}

/** For each broken promise, how many times it was broken, and one example. */
export type Violations = Map<string, { count: number; readonly example: string }>;

/** Compares every answer with the promises of Weir. */
export class Inspector {
  readonly ledger = new Ledger();
  readonly totals = new Map<string, PhaseTotals>();
  readonly violations: Violations = new Map();
  readonly #deadlineMs: number;

  /** @param deadlineMs the longest time that an answer may take, in milliseconds */
  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
  }

  totalsOf(phase: string): PhaseTotals {
    let totals = this.totals.get(phase);
    if (!totals) {
      const latency = createLatencyHistogram();
      totals = { requests: 0, statuses: {}, undecided: 0, late: 0, latency, durationMs: 0 };
      this.totals.set(phase, totals);
    }
    return totals;
  }

  inspect(phase: Phase, request: OutgoingRequest, answer: Answer): void {
    const { status, rateLimit, durationMs } = answer;
    const totals = this.totalsOf(phase.name);
    totals.requests += 1;
    totals.statuses[status] = (totals.statuses[status] ?? 0) + 1;
    recordMs(totals.latency, durationMs);
    const example = `${phase.name}: ${request.kind}, ${status}, ${durationMs.toFixed(0)} ms`;
    if (durationMs > this.#deadlineMs) {
      totals.late += 1;
      this.reportViolation("every answer arrives before the deadline", example);
    }
    if (status === 503) {
      const isAllowed = request.onError === "closed" && phase.isDisturbed;
      if (!isAllowed) {
        this.reportViolation(
          "a request gets 503 only if its rule is closed and the store fails",
          example,
        );
      }
    } else if (status !== 200 && status !== 429) {
      this.reportViolation("every status is 200, 429 or 503", example);
    } else if (status === 200) {
      if (rateLimit !== undefined) this.#recordAdmitted(rateLimit, request.client, answer);
      else if (request.onError !== "none") this.#checkUndecided(phase, request, answer, example);
    }
  }

  /** Records a request that the store admitted, under each policy that the RateLimit field names. */
  #recordAdmitted(rateLimit: string, client: string, { sentAt, answeredAt }: Answer): void {
    for (const [, name = ""] of rateLimit.matchAll(/"([^"]+)";r=/g)) {
      const policy = POLICIES.get(name);
      if (!policy) throw new Error(`The RateLimit field names an unknown policy: ${name}.`);
      this.ledger.record(name, policy.isShared ? "all" : client, policy, sentAt, answeredAt);
    }
  }

  #checkUndecided(phase: Phase, request: OutgoingRequest, answer: Answer, example: string): void {
    this.totalsOf(phase.name).undecided += 1;
    if (!phase.isDisturbed) {
      this.reportViolation("requests stay undecided only while the store fails", example);
    }
    if (request.onError === "closed") {
      this.reportViolation("a closed rule admits no undecided request", example);
    }
    if (request.onError !== "local") return;
    const { sentAt, answeredAt } = answer;
    this.ledger.record("local, undecided", request.client, LOCAL_POLICY, sentAt, answeredAt);
  }

  reportViolation(promise: string, example: string): void {
    const violation = this.violations.get(promise);
    if (violation) violation.count += 1;
    else this.violations.set(promise, { count: 1, example });
  }
}
