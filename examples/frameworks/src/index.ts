// For a Worker with a handler of its own.
import { weir } from "edge-weir";
import config from "../weir.config.ts";
import { app } from "./app.ts";

export { ControlObject, CounterObject } from "edge-weir";

const limits = weir(config);

export default {
  fetch(request, env, ctx) {
    return limits.fetch(request, env, ctx, (admitted) => app(admitted));
  },
} satisfies ExportedHandler<Env>;

interface Env {
  readonly COUNTERS: DurableObjectNamespace;
}
