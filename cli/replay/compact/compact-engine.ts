import type { Rule } from "../../../src/config/rule.ts";
import type { Config } from "../../../src/config/schema.ts";
import { AccessLineParser } from "../../logs/access-line.ts";
import type { RequestForm } from "../../logs/request-form.ts";
import { ClientHash } from "../../tally/client-ranking.ts";
import type { CompactReplay, ReplayedRequest, StoreUsage, VerdictTally } from "../report.ts";
import { UsageMeter } from "../usage.ts";
import { CompactClients } from "./compact-clients.ts";
import { CompactDecider } from "./compact-decider.ts";
import { type CompactRule, type CompactWindow, compactRulesOf } from "./compact-rules.ts";
import { DeniedRow } from "./denied-row.ts";
import { RequestRows } from "./request-rows.ts";
import { addObject, RowReader, type RowTables } from "./row-reader.ts";
import { type RuleSet, RuleSets } from "./rule-sets.ts";
import { SeenClients } from "./seen-clients.ts";

/**
 * Replays requests in rows. It does the same as the exact engine with requests as objects, in a fraction of the time and
 * the memory, because it creates no object for an allowed request.
 */
export class CompactEngine implements CompactReplay {
  readonly form: RequestForm<number>;
  hasReplayed = false;
  /** The number of requests that the Worker refuses before it reads the rules. */
  refused = 0;
  /** The number of OPTIONS requests that count as preflights because the log does not show more. */
  assumedPreflights = 0;
  readonly #tables: RowTables;
  readonly #usage: UsageMeter;
  readonly #decider: CompactDecider;
  readonly #seen: SeenClients;
  readonly #parser = new AccessLineParser(undefined);
  readonly #hash = new ClientHash();
  readonly #hashOfRule = new ClientHash();
  readonly #verdict = {
    ...{ rule: 0, client: "", denied: false, policy: "" },
    ...{ windowStart: 0, windowEnd: 0 },
  };

  /**
   * @param rules rules for which `isCompactRule` is true
   * @param firstCapacity how many clients have space at first; a power of two
   */
  constructor(config: Config, rules: readonly Rule[], firstCapacity?: number) {
    const compactRules = compactRulesOf(rules, config);
    const windows = compactRules.flatMap((rule) => rule.windows);
    const rows = new RequestRows();
    const clients = new CompactClients({
      size: { rules: rules.length, windows: windows.length },
      isLive: (index, window) => window >= (windows[index] as CompactWindow).number,
      onRemoval: (client) => this.#seen.flushClient(client),
      ipv6Prefix: config.ipv6Prefix,
      firstCapacity,
    });
    this.#seen = new SeenClients(clients, rules.length);
    this.#tables = { rows, clients, ruleSets: new RuleSets(compactRules, config) };
    this.#usage = new UsageMeter(config);
    this.#decider = new CompactDecider(windows.length, clients, this.#usage);
    this.form = {
      timeOf: (row) => rows.at[row] as number,
      discard: (row) => rows.remove(row),
      createReader: (input) => new RowReader(input, this.#tables),
      fromObject: (request) => addObject(request, this.#tables),
    };
  }

  /** The number of requests that were read and are not decided yet. */
  get waiting(): number {
    return this.#tables.rows.size;
  }

  /** Also removes the rows of the requests. */
  replay(batch: readonly number[], tally: VerdictTally): void {
    const { rows } = this.#tables;
    this.hasReplayed = true;
    this.#seen.prepare(tally);
    for (const row of batch) {
      this.#replay(row, tally);
      rows.remove(row);
    }
  }

  /** Completes the tally. @returns the calls to the store */
  finish(): StoreUsage {
    this.#seen.flush();
    return this.#usage.total;
  }

  #replay(row: number, tally: VerdictTally): void {
    const { rows, clients, ruleSets } = this.#tables;
    const now = rows.at[row] as number;
    const address = rows.address[row] as number;
    const client = clients.records.underRules(address);
    const set = ruleSets.sets[rows.rules[row] as number] as RuleSet;
    if (set.isRefused) this.refused++;
    if (set.isAssumedPreflight) this.assumedPreflights++;
    this.#decider.decide(set, client, now);
    const denied = this.#decider.isDenied
      ? new DeniedRow(rows, row, clients.text(address), this.#parser)
      : undefined;
    const isInRecord = denied === undefined && this.#seen.isCounting;
    if (isInRecord) clients.records.addSeen(address);
    else clients.records.readHash(address, this.#hash);
    const hash = isInRecord ? undefined : this.#hash;
    const step = tally.addOutcome(this.#outcomeOf(set), now, hash, denied);
    if (set.rules.length === 0) return;
    if (!isInRecord) clients.records.readHash(client, this.#hashOfRule);
    for (const rule of set.rules) {
      this.#setVerdict(rule, client, denied !== undefined);
      if (isInRecord) clients.records.addSeenUnder(client, rule.index);
      const hashOfRule = isInRecord ? undefined : this.#hashOfRule;
      tally.addVerdict(this.#verdict, now, step, hashOfRule, denied);
    }
  }

  #outcomeOf({ isRefused, rules }: RuleSet): ReplayedRequest["outcome"] {
    if (isRefused) return "undecided";
    if (rules.length === 0) return "unmatched";
    return this.#decider.isLimited ? "limited" : "allowed";
  }

  #setVerdict({ index, windows }: CompactRule, client: number, isDenied: boolean): void {
    const verdict = this.#verdict;
    const denying = isDenied
      ? windows.find((window) => this.#decider.hasDenied(window))
      : undefined;
    const window = denying ?? (windows[0] as CompactWindow);
    verdict.rule = index;
    verdict.denied = denying !== undefined;
    // Only denied clients are listed.
    verdict.client = denying === undefined ? "" : this.#tables.clients.text(client);
    verdict.policy = window.policy;
    verdict.windowEnd = window.endsAt;
    verdict.windowStart = window.endsAt - window.counter.windowMs;
  }
}
