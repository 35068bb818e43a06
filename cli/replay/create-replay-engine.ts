import type { Config } from "../../src/config/schema.ts";
import { plural } from "../doctor/finding.ts";
import type { LogFacts } from "../logs/log-request.ts";
import { Random } from "../simulation/random.ts";
import { CompactEngine } from "./compact/compact-engine.ts";
import { isCompactRule } from "./compact/compact-rules.ts";
import { ExactEngine } from "./exact-engine.ts";
import { IsolatesEngine } from "./isolates-engine.ts";
import { showsPreflights } from "./known-facts.ts";
import type {
  CreateReplayEngine,
  ReplayEngine,
  ReplayNote,
  ReplayOptions,
} from "./replay-engine.ts";
import { chooseRules, replayedRuleOf } from "./replayed-rules.ts";
import { RowTable } from "./row-table.ts";
import { LogRuleApplier } from "./rule-applier.ts";
import { ASSUMED } from "./simulated-world.ts";

const DEFAULT_SEED = 1;

/** Creates the engine for a configuration, and decides which rules the log's facts suffice for. */
export const createReplayEngine: CreateReplayEngine = (
  config: Config,
  facts: LogFacts,
  options: ReplayOptions,
): ReplayEngine => {
  const { isolates, seed = DEFAULT_SEED } = options;
  const { rules, leftOut, notes } = chooseRules(config, facts, options);
  const laterNotes: ReplayNote[] = [];
  const shardChoice = new Random(seed, "shards");
  const random = () => shardChoice.uniform();
  const rows = new RowTable();
  // In isolates, clients have no rows, because the simulated store has them.
  const ownRows = isolates === undefined ? rows : undefined;
  const applier = new LogRuleApplier(config, rules, facts, options, random, ownRows);
  const engine =
    isolates === undefined
      ? new ExactEngine(config, rules, applier, rows)
      : new IsolatesEngine(config, applier, isolates, seed);
  const isCompact = isolates === undefined && rules.every(isCompactRule) && !showsPreflights(facts);
  const compact = isCompact ? new CompactEngine(config, rules, options.firstCapacity) : undefined;
  return {
    compact,
    rules: rules.map(replayedRuleOf),
    notes: [...notes, ...callNotes(config, isolates, seed)],
    leftOut,
    laterNotes,
    replay: (requests, onDecided) => engine.replay(requests, onDecided),
    async finish() {
      if (compact) applier.addCounts(compact);
      const usage = compact?.hasReplayed ? compact.finish() : await engine.finish();
      laterNotes.push(...applier.notes());
      if (engine instanceof IsolatesEngine) laterNotes.push(...lostNotes(engine));
      return usage;
    },
  };
};

/** Notes about the calls to the store. The store in memory costs nothing. */
function callNotes({ store }: Config, isolates: number | undefined, seed: number): ReplayNote[] {
  if (isolates !== undefined) return [assumptionsAbout(isolates, seed)];
  return store === "memory" ? [] : [EXACT_CALLS];
}

const EXACT_CALLS: ReplayNote = {
  code: "calls-without-leases",
  text: "Each decision counts as one call to the store. Leases and the denial cache of a Worker make fewer calls: --isolates simulates them.",
};

function assumptionsAbout(isolates: number, seed: number): ReplayNote {
  const { roundTripMs, routing, deathsPerMinute } = ASSUMED;
  const parts = [
    `calls to the store take ${roundTripMs} ms on average`,
    `${100 * (1 - routing.strays)} % of a client's requests go to its home isolate, which changes every ${1 / routing.movesPerMinute} minutes`,
    `${100 * deathsPerMinute} % of the isolates end in a minute`,
  ];
  const text = `Simulates ${plural(isolates, "isolate")} with the seed ${seed}. The log does not state these assumptions: ${parts.join("; ")}.`;
  return { code: "simulated-isolates", text };
}

function lostNotes({ lostWithIsolate }: IsolatesEngine): ReplayNote[] {
  if (lostWithIsolate === 0) return [];
  const text = `${plural(lostWithIsolate, "request")} waited in isolates that ended, and count as undecided.`;
  return [{ code: "lost-with-isolate", text }];
}
