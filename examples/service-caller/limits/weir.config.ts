import { defineConfig } from "edge-weir/config";

export default defineConfig({
  rules: [
    {
      name: "reports",
      for: "programs",
      key: "custom:account",
      limit: 10,
      window: "1h",
      maxReserved: 5,
    },
  ],
});
