import { type RateLimitVariables, rateLimit } from "edge-weir";
import { Hono } from "hono";
import config from "./weir.config.ts";

export { ControlObject, CounterObject } from "edge-weir";

const app = new Hono<{ Variables: RateLimitVariables }>();

// The app decides which routes each rule applies to. With `app.use(rateLimit(config))`, the `match`
// of each rule would decide.
app.use("/api/*", rateLimit(config, { rule: "api" }));
app.get("/api/items", (c) => c.json(["a weir", "a mill"]));
app.get("/api/quotas", (c) => c.json(c.var.rateLimit));

app.post("/sign-up", rateLimit(config, { rule: "sign-up" }), (c) => c.text("Welcome", 201));

export default app;
