import { weir } from "weir";
import config from "./weir.config.ts";

export { CounterObject } from "weir";

/** What is counted by itself. A name that a client makes up must not get it a counter of its own. */
const OPERATIONS = ["Search", "Checkout"];

export default weir(config, {
  keys: {
    async operation(request) {
      // Of a clone: the body itself is still to be forwarded.
      const body = await request.clone().json<{ operationName?: string } | null>();
      return OPERATIONS.find((name) => name === body?.operationName) ?? "other";
    },
  },
});
