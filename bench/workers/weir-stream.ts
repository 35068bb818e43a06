import { defineConfig } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";
import { llmReserve, llmUsage } from "../../src/llm/index.ts";
import { bindings } from "./bindings.ts";

/** Weir with `llmUsage` and `llmReserve`, which count the tokens of a language model. */
export default weir(
  defineConfig({
    ...JSON.parse(bindings.CONFIG),
    custom: { costs: { estimate: llmReserve() }, settle: { usage: llmUsage() } },
  }),
);
