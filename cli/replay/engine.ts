import { formatCount } from "../../src/admin/format.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import {
  cureText,
  type ReportNote,
  statesHeader,
  type UnmetNeed,
  unmetNeedsOf,
} from "../logs/needs.ts";
import { formatKey, formatMatch, formatQuota } from "../rule-table.ts";
import { Random } from "../simulation/random.ts";
import { ExactEngine } from "./exact-engine.ts";
import type { ReplayedRequest } from "./groups.ts";
import { ASSUMED, IsolatesEngine } from "./isolates.ts";
import type { ReplayedRule, ReplayReport } from "./report.ts";
import { RowTable } from "./row-table.ts";
import { LogRuleApplier } from "./rule-applier.ts";
import type { StoreUsage } from "./usage.ts";

export interface ReplayOptions {
  /** Decide as this many isolates with leases and denial caches; undefined: exactly, by one store. */
  readonly isolates?: number | undefined;
  /** For the random numbers of `isolates`. */
  readonly seed?: number | undefined;
  /** Treat values that the log does not state as absent, instead of leaving the rule out. */
  readonly missingAsAbsent?: boolean | undefined;
}

/** Replays requests through the rules of one configuration. */
export interface ReplayEngine {
  readonly rules: readonly ReplayedRule[];
  /** What is assumed, and which rules are left out, because the log lacks what they need. */
  readonly notes: readonly ReportNote[];
  /** The rules that are left out. `notes` has the reasons too. */
  readonly leftOut: ReplayReport["leftOut"];
  /** Notes that only the end of the replay shows. Complete after `finish`. */
  readonly laterNotes: readonly ReportNote[];
  /**
   * Decides requests in the order of their times. With `isolates`, requests may be decided in another order,
   * and during a later call or `finish`, which call the last `onDecided`.
   */
  replay(
    requests: readonly LogRequest[],
    onDecided: (replayed: ReplayedRequest) => void,
  ): void | Promise<void>;
  /** Decides what is still under way. */
  finish(): Promise<StoreUsage>;
}

const DEFAULT_SEED = 1;

/** Creates the engine for a configuration, and decides which rules the log's facts suffice for. */
export function createReplayEngine(
  config: Config,
  facts: LogFacts,
  options: ReplayOptions,
): ReplayEngine {
  const { isolates, seed = DEFAULT_SEED, missingAsAbsent = false } = options;
  const { rules, leftOut, notes } = chooseRules(config, facts, missingAsAbsent);
  const laterNotes: ReportNote[] = [];
  const shardChoice = new Random(seed, "shards");
  const random = () => shardChoice.uniform();
  const applier = new LogRuleApplier(config, rules, facts, missingAsAbsent, random);
  const engine =
    isolates === undefined
      ? new ExactEngine(config, rules, applier, new RowTable())
      : new IsolatesEngine(config, applier, isolates, seed);
  return {
    rules: rules.map(replayedRuleOf),
    notes: [...notes, ...callNotes(config, isolates, seed)],
    leftOut,
    laterNotes,
    replay: (requests, onDecided) => engine.replay(requests, onDecided),
    async finish() {
      const usage = await engine.finish();
      laterNotes.push(...applier.notes());
      if (engine instanceof IsolatesEngine) laterNotes.push(...lostNotes(engine));
      return usage;
    },
  };
}

/** Notes about the calls to the store. The store in memory costs nothing. */
function callNotes({ store }: Config, isolates: number | undefined, seed: number): ReportNote[] {
  if (isolates !== undefined) return [isolatesNote(isolates, seed)];
  return store === "memory" ? [] : [EXACT_CALLS];
}

const EXACT_CALLS: ReportNote = {
  code: "calls-without-leases",
  text: "Each decision counts as one call to the store. Leases and the denial cache of a Worker make fewer calls: --isolates simulates them.",
};

function isolatesNote(isolates: number, seed: number): ReportNote {
  const { roundTripMs, routing, deathsPerMinute } = ASSUMED;
  const parts = [
    `calls to the store take ${roundTripMs} ms on average`,
    `${100 * (1 - routing.strays)}% of a client's requests go to its home isolate, which changes every ${1 / routing.movesPerMinute} minutes`,
    `${100 * deathsPerMinute}% of the isolates end in a minute`,
  ];
  const text = `Simulates ${formatCount(isolates, "isolate")} with the seed ${seed}. The log does not state these assumptions: ${parts.join("; ")}.`;
  return { code: "simulated-isolates", text };
}

function lostNotes({ lostWithIsolate }: IsolatesEngine): ReportNote[] {
  if (lostWithIsolate === 0) return [];
  const text = `${formatCount(lostWithIsolate, "request")} waited in isolates that ended, and count as undecided.`;
  return [{ code: "lost-with-isolate", text }];
}

/** The rules that a log suffices for, and why the others are left out. */
interface RuleChoice {
  readonly rules: readonly Rule[];
  readonly leftOut: ReplayReport["leftOut"];
  readonly notes: readonly ReportNote[];
}

/** Chooses the rules to replay by the facts that the log states. */
export function chooseRules(
  { rules }: Pick<Config, "rules">,
  facts: LogFacts,
  missingAsAbsent: boolean,
): RuleChoice {
  const chosen: Rule[] = [];
  const leftOut: { rule: string; reason: string }[] = [];
  const notes: ReportNote[] = [];
  for (const rule of rules) {
    const { name } = rule;
    const needs = unmetNeedsOf(rule, facts);
    const isChosen = needs.every(({ canBeAbsent }) => missingAsAbsent && canBeAbsent);
    if (isChosen) {
      chosen.push(rule);
      notes.push(...needs.map((need) => absentNote(rule, need)));
      notes.push(...exemptionNotes(rule, facts), ...assumptionsAbout(rule));
      continue;
    }
    const reasons = needs.map(reasonOf);
    leftOut.push({ rule: name, reason: reasons.join(" ") });
    for (const [index, { code }] of needs.entries()) {
      const text = `The rule "${name}" is left out. ${reasons[index]}`;
      notes.push({ code, rule: name, text });
    }
  }
  return { rules: chosen, leftOut, notes };
}

function reasonOf(need: UnmetNeed): string {
  const cure = cureText(need);
  return cure === undefined ? need.reason : `${need.reason} To replay it, ${cure}.`;
}

function absentNote({ name }: Rule, { reason }: UnmetNeed): ReportNote {
  const text = `${reason} The rule "${name}" is replayed as if no request had it.`;
  return { code: "treated-as-absent", rule: name, text };
}

/** Exemptions by header fields that the log lacks, or whose value is a secret of the Worker. */
function exemptionNotes({ name, exempt }: Rule, facts: LogFacts): ReportNote[] {
  const notes: ReportNote[] = [];
  const add = (text: string) => notes.push({ code: "exemption-not-logged", rule: name, text });
  if (exempt && exempt.networks.size > 0 && !facts.ip) {
    add(`The rule "${name}" is replayed without exempt.ips: the log does not state addresses.`);
  }
  for (const { name: field, value } of exempt?.headers ?? []) {
    const reason = !statesHeader(facts, field)
      ? `the log does not state the header field ${field}`
      : typeof value !== "string" && "its value is a secret of the Worker";
    if (!reason) continue;
    add(`The rule "${name}" is replayed without the exemption by ${field}: ${reason}.`);
  }
  return notes;
}

function assumptionsAbout({ name, spread, shards }: Rule): ReportNote[] {
  const notes: ReportNote[] = [];
  if (spread) {
    const text = `The windows of the rule "${name}" begin as in a Worker without WEIR_KEY_SECRET. With this secret, they begin at other times.`;
    notes.push({ code: "spread-without-secret", rule: name, text });
  }
  if (shards > 1) {
    const text = `The rule "${name}" chooses between shards at random, so a Worker may decide a few requests differently.`;
    notes.push({ code: "random-shards", rule: name, text });
  }
  return notes;
}

/** Describes a rule for reports. */
export function replayedRuleOf({ name, mode, key, windows, match }: Rule): ReplayedRule {
  return {
    name,
    mode,
    key: formatKey(key),
    limits: windows.map(formatQuota).join(", "),
    match: formatMatch(match),
  };
}
