import { defineConfig } from "edge-weir/config";
import { llmReserve, llmUsage } from "edge-weir/llm";

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
      cost: { reserve: "custom:estimate", settle: "custom:usage", max: 50_000 },
      onError: "closed",
    },
    // Without this rule, a client could try any number of API keys.
    { name: "calls", match: CALLS, key: "ip", limit: 600, window: "1m", onError: "local" },
  ],
  custom: {
    // The Worker sets max_tokens to 1000 in calls that have none.
    costs: { estimate: llmReserve({ output: 1000 }) },
    settle: { usage: llmUsage() },
  },
});
