import { vi } from "vitest";

// Every test of the Upstash store again, with the client that wrangler bundles. Under vitest, as for
// whoever installs the package, the store has @upstash/redis itself.
vi.mock("@upstash/redis/cloudflare", () => import("../../../../src/stores/upstash/small-redis.ts"));

await import("./upstash-store.test.ts");
