import { defineConfig } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";
import { bindings } from "./bindings.ts";

/** Weir as it is deployed, but for a configuration that the bench gives it. */
export default weir(defineConfig(JSON.parse(bindings.CONFIG)));
