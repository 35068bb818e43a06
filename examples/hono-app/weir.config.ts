import { defineConfig } from "edge-weir/config";

export default defineConfig({
  rules: [
    // If the app also accepts unknown API keys, add a rule with key: "ip", and use it on /api/*
    // too. `weir check` does not warn about this, because it cannot see that the app uses the rule
    // sign-up on one route only.
    { name: "api", key: "header:x-api-key | ip", limit: 100, window: "1m" },
    { name: "sign-up", key: "ip", limit: 3, window: "1h" },
  ],
});
