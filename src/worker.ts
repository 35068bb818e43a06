import config from "../weir.config.ts";
import { weir } from "./index.ts";

export { CounterObject } from "./index.ts";

// What wrangler deploys: weir.config.ts in front of the origin that wrangler.toml routes to.
export default weir(config);
