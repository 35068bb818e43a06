import { defineConfig } from "edge-weir/config";

// 10 exports an hour. Unused quota is saved, up to 30 exports. So a new client can make 30 exports
// at once, and so can a client that was idle for three hours.
export default defineConfig({
  rules: [
    {
      name: "exports",
      match: { methods: ["POST"], paths: ["/exports"] },
      key: "header:x-api-key | ip",
      limit: 10,
      window: "1h",
      capacity: 30,
    },
    {
      // Clients can invent API keys, and each new key has a new counter. This rule limits the
      // requests of one address in total, whatever their keys are. Its quota is enough for ten
      // clients.
      name: "exports-address",
      match: { methods: ["POST"], paths: ["/exports"] },
      key: "ip",
      limit: 100,
      window: "1h",
      capacity: 300,
    },
  ],
});
