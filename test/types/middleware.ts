// `npm run types` compiles this file. The middleware must fit into apps with types of their own.
import { Hono, type MiddlewareHandler } from "hono";
import { defineConfig } from "../../src/config/index.ts";
import { type RateLimitVariables, rateLimit } from "../../src/index.ts";

interface AppTypes {
  Bindings: { ORIGIN: string };
  Variables: { user: string };
}

const config = defineConfig({ rules: [{ name: "login", limit: 5, window: "1m" }] });

const app = new Hono<AppTypes>();
app.use(rateLimit(config));
app.get("/user", rateLimit(config, { rule: "login" }), (c) =>
  c.text(`${c.env.ORIGIN} ${c.var.user} ${c.var.rateLimit.length}`),
);
app.use(async (c, next) => {
  if (c.env.ORIGIN) return rateLimit(config)(c, next);
  return await next();
});

/** Handlers that are chained to the middleware know the type of its variable. */
const chained = new Hono().use(rateLimit(config)).get("/left", (c) => {
  // @ts-expect-error: the variable is a list
  const text: string = c.var.rateLimit;
  return c.json({ text, left: c.var.rateLimit[0]?.remaining });
});

/** Handlers that are not chained know the type if the app declares it. */
const declared = new Hono<{ Variables: RateLimitVariables }>();
declared.use(rateLimit(config));
declared.get("/left", (c) => c.json(c.var.rateLimit));

const middleware: MiddlewareHandler<AppTypes> = rateLimit(config);

export { app, chained, declared, middleware };
