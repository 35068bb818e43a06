import { defineConfig } from "edge-weir/config";
import { llmReserve, llmUsage } from "edge-weir/llm";

/** The tokens of an answer if the call has no maximum: the Worker then sets `max_tokens`. */
export const DEFAULT_ANSWER = 1000;
/** The highest estimate of a call. The Worker refuses calls whose estimate is higher. */
export const MAX_ESTIMATE = 50_000;
/** Estimates the tokens of a call: those of the prompt and of all answers. */
export const estimate = llmReserve({ output: DEFAULT_ANSWER });

const CALLS = { methods: ["POST"], paths: ["/v1/chat/completions"] };

export default defineConfig({
  rules: [
    // The tokens of one API key. Weir charges an estimate before the call. When the answer has
    // ended, also a streamed one, it charges or gives back the difference to the tokens used.
    {
      name: "tokens",
      match: CALLS,
      key: "header:x-api-key",
      limit: 100_000,
      window: "1h",
      cost: { reserve: "custom:estimate", settle: "custom:usage", max: MAX_ESTIMATE },
      onError: "closed",
    },
    // Without this rule, a client could try any number of API keys.
    { name: "calls", match: CALLS, key: "ip", limit: 600, window: "1m", onError: "local" },
  ],
  custom: {
    costs: { estimate },
    settle: { usage: llmUsage() },
  },
});
