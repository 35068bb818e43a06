import { defineConfig } from "weir/config";

export default defineConfig({
  rules: [
    // Where the app answers unknown keys too, put a rule with key: "ip" beside this one.
    { name: "api", key: "header:x-api-key | ip", limit: 100, window: "1m" },
    { name: "sign-up", key: "ip", limit: 3, window: "1h" },
  ],
});
