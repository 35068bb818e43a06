import { Ratelimit } from "@upstash/ratelimit";
import { Redis } from "@upstash/redis/cloudflare";
import { Hono } from "hono/tiny";
import { bindings, CLIENT_HEADER, LIMITED_PATH } from "./bindings.ts";
import { forward } from "./forward.ts";

/**
 * `@upstash/ratelimit` as in its documentation for Workers: with the client for Cloudflare, and with a Map outside the
 * handler as its cache of denied clients. Analytics are off, because they would add a write to each request. The
 * limiter is created outside the handler, because one limiter for all requests costs less than one for each request.
 *
 * By default, the client sends the commands that are called in the same tick together in one call (auto-pipelining).
 *
 * https://upstash.com/docs/redis/sdks/ratelimit-ts/features
 * https://github.com/upstash/ratelimit-js/blob/main/examples/cloudflare-workers/src/index.ts
 */
const pipelining = bindings.AUTO_PIPELINING ?? "on";
const denied = new Map<string, number>();
const ratelimit = new Ratelimit({
  redis: Redis.fromEnv(bindings, { enableAutoPipelining: pipelining !== "off" }),
  limiter: Ratelimit.fixedWindow(Number(bindings.LIMIT), `${Number(bindings.WINDOW_SECONDS)} s`),
  ephemeralCache: denied,
  analytics: false,
  // The subjects share one Redis.
  prefix: `upstash:${pipelining}`,
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
