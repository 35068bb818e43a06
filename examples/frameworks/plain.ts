import { weir } from "edge-weir";
import { app } from "./app.ts";
import config from "./weir.config.ts";

const limits = weir(config);

export default {
  fetch(request, env, ctx) {
    return limits.fetch(request, env, ctx, (admitted) => app(admitted));
  },
} satisfies ExportedHandler<Env>;

interface Env {
  readonly COUNTERS: DurableObjectNamespace;
}
