import { defineConfig } from "edge-weir/config";

export default defineConfig({
  rules: [
    {
      name: "login",
      match: { methods: ["POST"], paths: ["/login", "/password-reset"] },
      key: "ip",
      limit: 5,
      window: "1m",
      sliding: true,
      onError: "closed",
    },
    {
      name: "search",
      match: { paths: ["/search"] },
      key: "header:x-api-key | ip",
      limits: [
        { limit: 60, window: "1m" },
        { limit: 1000, window: "1h" },
      ],
    },
    {
      // Clients can invent API keys, and each new key has a new counter. This rule limits all keys of
      // one address together, with quota for ten clients.
      name: "search-address",
      match: { paths: ["/search"] },
      key: "ip",
      limit: 600,
      window: "1m",
    },
  ],
});
