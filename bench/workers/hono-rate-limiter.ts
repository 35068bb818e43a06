import { Redis } from "@upstash/redis/cloudflare";
import { Hono, type MiddlewareHandler } from "hono";
import { RedisStore, rateLimiter } from "hono-rate-limiter";
import { bindings, CLIENT_HEADER, LIMITED_PATH } from "./bindings.ts";
import { forward } from "./forward.ts";

/**
 * `hono-rate-limiter` with its RedisStore on `@upstash/redis`, as in its documentation, with one change:
 * the first request creates the limiter. The store's constructor loads scripts into Redis, and a Worker
 * may not send requests outside a request handler.
 *
 * https://honohub.dev/docs/rate-limiter/stores/redis
 */
let limiter: MiddlewareHandler | undefined;

function createLimiter(): MiddlewareHandler {
  return rateLimiter({
    windowMs: Number(bindings.WINDOW_SECONDS) * 1000,
    limit: Number(bindings.LIMIT),
    keyGenerator: (c) => c.req.header(CLIENT_HEADER) ?? "",
    store: new RedisStore({ client: Redis.fromEnv(bindings) }),
  });
}

const app = new Hono();
app.use(LIMITED_PATH, (c, next) => {
  limiter ??= createLimiter();
  return limiter(c, next);
});
app.all("*", ({ req }) => forward(req.raw));

export default app;
