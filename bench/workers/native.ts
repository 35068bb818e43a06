import { Hono } from "hono/tiny";
import { bindings, CLIENT_HEADER, LIMITED_PATH } from "./bindings.ts";
import { forward } from "./forward.ts";

/**
 * The platform's own binding. What stands behind it here is miniflare's emulation, which counts
 * exactly; on Cloudflare each location counts for itself, and catches up with itself later.
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
