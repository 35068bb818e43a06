import { weir } from "edge-weir";
import config from "../weir.config.ts";

// The class of the Durable Objects that hold the counters. wrangler.toml binds it as COUNTERS.
export { ControlObject, CounterObject } from "edge-weir";

export default weir(config);
