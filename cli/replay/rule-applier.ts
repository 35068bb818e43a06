import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import type { AppliedClient } from "./applied-client.ts";
import { showsPreflights } from "./known-facts.ts";
import { LoggedRequest } from "./logged-request.ts";
import type { ReplayNote, ReplayOptions } from "./replay-engine.ts";
import { RouteCache } from "./route-cache.ts";
import { RuleClients } from "./rule-clients.ts";

/** The number of cached clients of all rules together. They take about 50 MB. */
const MAX_CLIENTS = 65_536;
const MIN_CLIENTS = 256;

/** Finds the rules and the counters of each request in a log, as the Worker does. */
export class LogRuleApplier {
  readonly #request: LoggedRequest;
  readonly #routes: RouteCache;
  readonly #clients: ReadonlyMap<Rule, RuleClients>;
  readonly #rules: readonly Rule[];
  /** The number of requests that the Worker refuses before it reads the rules. */
  refused = 0;

  /** @param random returns a number from 0 to less than 1, to choose between shards */
  constructor(
    config: Config,
    rules: readonly Rule[],
    facts: LogFacts,
    { missingAsAbsent = false }: ReplayOptions,
    random: () => number,
  ) {
    const knowsPreflights = showsPreflights(facts);
    this.#rules = rules;
    this.#request = new LoggedRequest(knowsPreflights);
    this.#routes = new RouteCache(rules, config.caseSensitivePaths, knowsPreflights, this.#request);
    const options = {
      random,
      countsUnknownAddress: missingAsAbsent && !facts.ip,
      maxClients: Math.max(MIN_CLIENTS, Math.floor(MAX_CLIENTS / Math.max(1, rules.length))),
    };
    this.#clients = new Map(
      rules.map((rule, index) => [rule, new RuleClients(rule, index, config, options)]),
    );
  }

  /** @returns undefined if the Worker refuses the request before it reads the rules */
  apply(request: LogRequest): readonly AppliedClient[] | undefined {
    const matches = this.#routes.matchesOf(request);
    if (!matches) {
      this.refused++;
      return undefined;
    }
    const [first] = matches;
    if (matches.length === 1 && first) {
      const single = this.#clients.get(first.rule)?.apply(first, this.#request);
      return single ? [single] : NONE;
    }
    const applied: AppliedClient[] = [];
    for (const match of matches) {
      const client = this.#clients.get(match.rule)?.apply(match, this.#request);
      if (client) applied.push(client);
    }
    return applied;
  }

  /** Returns what only the end of a replay shows. */
  notes(): ReplayNote[] {
    const notes: ReplayNote[] = [];
    const { assumedPreflights } = this.#routes;
    if (this.refused > 0) {
      const text = `${requests(this.refused)} an unclear host or path, or a path that is too long. The Worker answers with 400 or 414 and reads no rules. They count as undecided.`;
      notes.push({ code: "refused-requests", text });
    }
    if (assumedPreflights > 0) {
      const text = `${requests(assumedPreflights)} the method OPTIONS and count as CORS preflights, because the log does not state the header fields of preflights. Only rules that name OPTIONS count them.`;
      notes.push({ code: "assumed-preflights", text });
    }
    for (const rule of this.#rules) {
      const withoutAddress = this.#clients.get(rule)?.withoutAddress ?? 0;
      if (withoutAddress === 0) continue;
      const text = `${requests(withoutAddress)} no valid client address in the log. The rule "${rule.name}" does not count them.`;
      notes.push({ code: "address-not-logged", rule: rule.name, text });
    }
    return notes;
  }
}

const NONE: readonly AppliedClient[] = [];

function requests(count: number): string {
  return count === 1 ? "1 request has" : `${count.toLocaleString("en")} requests have`;
}
