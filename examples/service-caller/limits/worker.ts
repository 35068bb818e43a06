import { WeirService } from "weir";
import config from "./weir.config.ts";

export { CounterObject } from "weir";

/** Bound by other Workers as a service with `entrypoint = "Limits"`. */
export class Limits extends WeirService<typeof config> {
  readonly config = config;
}

// Nobody has business here over HTTP.
export default { fetch: () => new Response(null, { status: 404 }) };
