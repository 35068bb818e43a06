import { defineConfig } from "edge-weir/config";

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
});
