// The entry point edge-weir/llm, for budgets of tokens. It loads in Node and in workerd.
export { type LlmReserveOptions, llmReserve } from "./llm-reserve.ts";
export { type LlmUsageOptions, llmUsage } from "./llm-usage.ts";
export type { TokenWeights } from "./token-counts.ts";
