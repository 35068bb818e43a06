import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    cloudflareTest({
      wrangler: { configPath: "./wrangler.toml" },
      // The origin in tests.
      miniflare: { serviceBindings: { API: () => new Response("Hello from the origin.") } },
    }),
  ],
});
