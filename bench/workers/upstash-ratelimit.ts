import { Ratelimit } from "@upstash/ratelimit";
import { Redis } from "@upstash/redis/cloudflare";
import { Hono } from "hono/tiny";
import { bindings, CLIENT_HEADER, LIMITED_PATH } from "./bindings.ts";
import { forward } from "./forward.ts";

/**
 * `@upstash/ratelimit` as its documentation has it for Workers: the client for Cloudflare, and a
 * Map outside of the handler in which it remembers who is denied. Analytics are off, which would
 * write once more for each request. The limiter too stands outside, where its documentation allows
 * it: that costs it less than making one for every request.
 *
 * https://upstash.com/docs/redis/sdks/ratelimit-ts/features
 * https://github.com/upstash/ratelimit-js/blob/main/examples/cloudflare-workers/src/index.ts
 */
const denied = new Map<string, number>();
const ratelimit = new Ratelimit({
  redis: Redis.fromEnv(bindings),
  limiter: Ratelimit.fixedWindow(Number(bindings.LIMIT), `${Number(bindings.WINDOW_SECONDS)} s`),
  ephemeralCache: denied,
  analytics: false,
});

const app = new Hono();
app.use(LIMITED_PATH, async (c, next) => {
  const { success, pending } = await ratelimit.limit(c.req.header(CLIENT_HEADER) ?? "");
  c.executionCtx.waitUntil(pending);
  if (!success) return c.text("Too many requests", 429);
  await next();
});
app.all("*", ({ req }) => forward(req.raw));

export default app;
