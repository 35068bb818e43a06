import { defineConfig } from "weir/config";

// The model's provider grants 1,000,000 tokens a minute to all of us together. One counter for
// everything would be a bottleneck, so the quota lies in ten of 100,000 each; a call looks at two
// and takes the roomier. No call can cost more than one of them holds.
export default defineConfig({
  rules: [{ name: "tokens", key: "global", limit: 1_000_000, window: "1m", shards: 10 }],
});
