import type { Config } from "../../src/config/schema.ts";
import type { LogFacts } from "../logs/log-request.ts";
import { ExactEngine } from "./exact-engine.ts";
import type {
  CreateReplayEngine,
  ReplayEngine,
  ReplayNote,
  ReplayOptions,
} from "./replay-engine.ts";
import { chooseRules, replayedRuleOf } from "./replayed-rules.ts";
import { LogRuleApplier } from "./rule-applier.ts";

/** Creates the engine for a configuration, and decides which rules the log's facts suffice for. */
export const createReplayEngine: CreateReplayEngine = (
  config: Config,
  facts: LogFacts,
  options: ReplayOptions,
): ReplayEngine => {
  const { rules, leftOut, notes } = chooseRules(config, facts, options);
  const laterNotes: ReplayNote[] = [];
  const applier = new LogRuleApplier(config, rules, facts, options, Math.random);
  const engine = new ExactEngine(config, rules, applier);
  return {
    rules: rules.map(replayedRuleOf),
    notes,
    leftOut,
    laterNotes,
    replay: (requests, onDecided) => engine.replay(requests, onDecided),
    async finish() {
      laterNotes.push(...applier.notes());
      return engine.usage;
    },
  };
};
