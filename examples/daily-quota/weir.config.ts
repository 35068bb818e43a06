import { defineConfig } from "edge-weir/config";

// 1000 requests a day for each API key. A new day begins at midnight UTC, because the Unix epoch
// began at midnight UTC. To begin days at midnight in another time zone, set start to a midnight
// there. With "2026-01-01T00:00:00-08:00", days begin at 08:00 UTC, in summer too.
export default defineConfig({
  rules: [
    {
      name: "daily",
      match: { paths: ["/api/*"] },
      key: "header:x-api-key | ip",
      limit: 1000,
      window: "1d",
      start: "epoch",
    },
    {
      // Clients can invent API keys, and each new key has a new counter. This rule limits the
      // requests of one address in total, whatever their keys are. Its quota is enough for ten
      // clients.
      name: "daily-address",
      match: { paths: ["/api/*"] },
      key: "ip",
      limit: 10_000,
      window: "1d",
    },
  ],
});
