import { defineConfig } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";
import { bindings } from "./bindings.ts";

/** Weir as it is deployed, with a configuration from the bench. */
export default weir(defineConfig(JSON.parse(bindings.CONFIG)));
