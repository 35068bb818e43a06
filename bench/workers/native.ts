import { Hono } from "hono/tiny";
import { bindings, CLIENT_HEADER, LIMITED_PATH } from "./bindings.ts";
import { forward } from "./forward.ts";

/**
 * Cloudflare's `ratelimits` binding, as miniflare emulates it. The emulation counts exactly. On Cloudflare,
 * each location counts separately, and its counts are eventually consistent.
 *
 * https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/
 */
const app = new Hono();
app.use(LIMITED_PATH, async (c, next) => {
  const { success } = await bindings.RATE_LIMITER.limit({
    key: c.req.header(CLIENT_HEADER) ?? "",
  });
  if (!success) return c.text("Too many requests", 429);
  await next();
});
app.all("*", ({ req }) => forward(req.raw));

export default app;
