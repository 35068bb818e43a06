import { defineConfig } from "weir/config";

// 1000 requests a day for each API key, all of them back at midnight UTC: days are counted from the
// Unix epoch, which began at one. For midnight elsewhere, name one: start: "2026-01-01T00:00:00-08:00"
// stays at that distance from UTC all year.
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
      // A key can be made up, and each is a client of its own: this bounds them all together, with
      // quota for ten clients behind one address.
      name: "daily-address",
      match: { paths: ["/api/*"] },
      key: "ip",
      limit: 10_000,
      window: "1d",
    },
  ],
});
