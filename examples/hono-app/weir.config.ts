import { defineConfig } from "weir/config";

export default defineConfig({
  rules: [
    // Where the app answers unknown keys too, add a rule with key: "ip" and use it on /api/* as well.
    // `weir check` does not ask for it: it cannot see that the app uses sign-up on another route only.
    { name: "api", key: "header:x-api-key | ip", limit: 100, window: "1m" },
    { name: "sign-up", key: "ip", limit: 3, window: "1h" },
  ],
});
