import { WeirService } from "edge-weir";
import config from "./weir.config.ts";

export { ControlObject, CounterObject } from "edge-weir";

/** Other Workers bind this class as a service with `entrypoint = "Limits"`. */
export class Limits extends WeirService<typeof config> {
  readonly config = config;
}

// This Worker answers every HTTP request with 404.
export default { fetch: () => new Response(null, { status: 404 }) };
