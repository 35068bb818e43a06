import { defineConfig } from "weir/config";

export default defineConfig({
  rules: [
    // A GraphQL API has one path. This counts each client's operations apart.
    {
      name: "graphql",
      match: { methods: ["POST"], paths: ["/graphql"] },
      key: ["ip", "custom:operation"],
      limit: 20,
      window: "1m",
    },
  ],
});
