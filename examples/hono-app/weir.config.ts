import { defineConfig } from "weir/config";

export default defineConfig({
  rules: [
    { name: "api", key: "header:x-api-key | ip", limit: 100, window: "1m" },
    { name: "sign-up", key: "ip", limit: 3, window: "1h" },
  ],
});
