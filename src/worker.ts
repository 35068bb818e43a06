import config from "../weir.config.ts";
import { WeirService, weir } from "./index.ts";

export { CounterObject } from "./index.ts";

// The Worker that wrangler deploys: weir.config.ts in front of the origin that wrangler.toml routes to.
export default weir(config);

/** The same rules for other Workers of the account, over a service binding with this entrypoint. */
export class Limits extends WeirService<typeof config> {
  override readonly config = config;
}
