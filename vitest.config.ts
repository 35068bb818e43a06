import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        plugins: [cloudflareTest({ wrangler: { configPath: "./wrangler.toml" } })],
        test: { name: "workerd", include: ["test/workerd/**/*.test.ts"] },
      },
      {
        test: { name: "node", environment: "node", include: ["test/node/**/*.test.ts"] },
      },
    ],
  },
});
