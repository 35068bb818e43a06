import { defineConfig } from "edge-weir/config";

export default defineConfig({
  rules: [{ name: "api", match: { paths: ["/api/*"] }, key: "ip", limit: 3, window: "1h" }],
});
