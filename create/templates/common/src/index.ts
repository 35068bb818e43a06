import { weir } from "edge-weir";
import config from "../weir.config.ts";

// The classes of the Durable Objects with the statistics and with the counters. wrangler.toml binds them as
// WEIR_CONTROL and COUNTERS.
export { ControlObject, CounterObject } from "edge-weir";

export default weir(config);
