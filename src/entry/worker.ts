import config from "../../weir.config.ts";
import { WeirService, weir } from "../index.ts";

export { ControlObject, CounterObject } from "../index.ts";

// Wrangler deploys this Worker. It applies the rules of weir.config.ts to the routes in
// wrangler.toml.
export default weir(config);

/** Other Workers of the account use the same rules over a service binding to this entrypoint. */
export class Limits extends WeirService<typeof config> {
  override readonly config = config;
}
