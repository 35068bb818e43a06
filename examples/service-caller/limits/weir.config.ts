import { defineConfig } from "weir/config";

export default defineConfig({
  rules: [{ name: "reports", key: "custom:account", limit: 10, window: "1h", maxReserved: 5 }],
});
