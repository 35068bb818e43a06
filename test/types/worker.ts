// `npm run types` compiles this file. The handler must fit into a Worker with a type for its
// bindings.
import { defineConfig } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";

/** The bindings, in the form that `wrangler types` generates. */
interface Env {
  COUNTERS: DurableObjectNamespace;
}

const config = defineConfig({ rules: [] });
const limited = weir(config);

export const alone = weir(config) satisfies ExportedHandler<Env>;

export const called = {
  fetch(request, env) {
    return limited.fetch(request, env);
  },
} satisfies ExportedHandler<Env>;

export const extended = {
  ...weir(config),
  async scheduled() {},
} satisfies ExportedHandler<Env>;
