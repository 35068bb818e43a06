import type { RecordableHistogram } from "node:perf_hooks";
import { createLatencies, recordMs } from "./latency.ts";
import { Ledger } from "./ledger.ts";
import type { Answer } from "./load.ts";
import { LOCAL_POLICY, POLICIES } from "./rules.ts";
import type { Outgoing } from "./traffic.ts";

/** What is going on while a request is sent. */
export type Phase = {
  name: string;
  /** Whether the store is broken, or was until a moment ago, so that requests may be undecided. */
  isTroubled: boolean;
};

/** All requests of the phases of one name. */
export type Tally = {
  requests: number;
  statuses: Record<number, number>;
  /** Passed without a decision of the store. */
  undecided: number;
  late: number;
  latency: RecordableHistogram;
  ms: number;
};

/** Broken promises, by what was promised: how often, and one of them. */
export type Violations = Map<string, { count: number; example: string }>;

/** Holds every answer against what Weir promises. */
export class Inspector {
  readonly ledger = new Ledger();
  readonly tallies = new Map<string, Tally>();
  readonly violations: Violations = new Map();
  readonly #latestMs: number;

  /** @param latestMs no answer may take longer */
  constructor(latestMs: number) {
    this.#latestMs = latestMs;
  }

  tallyOf(phase: string): Tally {
    let tally = this.tallies.get(phase);
    if (!tally) {
      const latency = createLatencies();
      tally = { requests: 0, statuses: {}, undecided: 0, late: 0, latency, ms: 0 };
      this.tallies.set(phase, tally);
    }
    return tally;
  }

  see(phase: Phase, outgoing: Outgoing, answer: Answer): void {
    const { status, rateLimit, ms } = answer;
    const tally = this.tallyOf(phase.name);
    tally.requests += 1;
    tally.statuses[status] = (tally.statuses[status] ?? 0) + 1;
    recordMs(tally.latency, ms);
    const said = `${phase.name}: ${outgoing.kind}, ${status}, ${ms.toFixed(0)} ms`;
    if (ms > this.#latestMs) {
      tally.late += 1;
      this.violate("no request later than its deadline", said);
    }
    if (status === 503) {
      const isMeant = outgoing.onError === "closed" && phase.isTroubled;
      if (!isMeant) this.violate("503 only where a rule is closed, in trouble", said);
    } else if (status !== 200 && status !== 429) {
      this.violate("nothing but 200, 429 and 503", said);
    } else if (status === 200) {
      if (rateLimit !== undefined) this.#count(rateLimit, outgoing.client, answer);
      else if (outgoing.onError !== "none") this.#countUndecided(phase, outgoing, answer, said);
    }
  }

  /** What the store has admitted, by the policies that the answer names. */
  #count(rateLimit: string, client: string, { sentAt, answeredAt }: Answer): void {
    for (const [, name = ""] of rateLimit.matchAll(/"([^"]+)";r=/g)) {
      const policy = POLICIES.get(name);
      if (!policy) throw new Error(`There is no policy ${name}.`);
      this.ledger.record(name, policy.isShared ? "all" : client, policy, sentAt, answeredAt);
    }
  }

  #countUndecided(phase: Phase, outgoing: Outgoing, answer: Answer, said: string): void {
    this.tallyOf(phase.name).undecided += 1;
    if (!phase.isTroubled) this.violate("undecided in trouble only", said);
    if (outgoing.onError === "closed") this.violate("closed lets nothing undecided pass", said);
    if (outgoing.onError !== "local") return;
    const { sentAt, answeredAt } = answer;
    this.ledger.record("local, by itself", outgoing.client, LOCAL_POLICY, sentAt, answeredAt);
  }

  violate(promise: string, example: string): void {
    const known = this.violations.get(promise);
    if (known) known.count += 1;
    else this.violations.set(promise, { count: 1, example });
  }
}
