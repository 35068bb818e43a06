import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    cloudflareTest({
      wrangler: { configPath: "./wrangler.toml" },
      miniflare: {
        // The origin in tests: the Worker's requests get this answer, and none reaches the network.
        bindings: { ORIGIN_URL: "https://origin.example" },
        outboundService: () => new Response("Hello from the origin."),
      },
    }),
  ],
});
