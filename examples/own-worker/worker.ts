import { weir } from "edge-weir";
import config from "./weir.config.ts";

export { CounterObject } from "edge-weir";

/**
 * Only these operations have a counter of their own, because a client must not get a new counter by
 * inventing a name.
 */
const OPERATIONS = ["Search", "Checkout"];

export default weir(config, {
  keys: {
    async operation(request) {
      // Read a clone, because Weir still has to forward the body.
      const body = await request.clone().json<{ operationName?: string } | null>();
      return OPERATIONS.find((name) => name === body?.operationName) ?? "other";
    },
  },
});
