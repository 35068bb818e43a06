import { defineConfig } from "edge-weir/config";

/**
 * Only these operations have a counter of their own, because a client must not get a new counter by
 * inventing a name.
 */
const OPERATIONS = ["Search", "Checkout"];

export default defineConfig({
  rules: [
    // A GraphQL API has one path. This rule counts each operation of a client separately.
    {
      name: "graphql",
      match: { methods: ["POST"], paths: ["/graphql"] },
      key: ["ip", "custom:operation"],
      limit: 20,
      window: "1m",
    },
  ],
  custom: {
    keys: {
      async operation(request) {
        // Read a clone, because Weir still has to forward the body.
        const body = (await request.clone().json()) as { operationName?: string } | null;
        return OPERATIONS.find((name) => name === body?.operationName) ?? "other";
      },
    },
  },
});
