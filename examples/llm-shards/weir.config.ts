import { defineConfig } from "edge-weir/config";

// The model's provider grants this account 1,000,000 tokens a minute. A single counter would be a
// bottleneck, so the quota is spread over ten shards of 100,000 tokens each. Each call is charged
// to a random shard. Because this shard must have quota for the whole call, no call can cost more
// than 100,000 tokens.
export default defineConfig({
  rules: [{ name: "tokens", key: "global", limit: 1_000_000, window: "1m", shards: 10 }],
});
